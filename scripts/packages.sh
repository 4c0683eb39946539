# shellcheck shell=bash
# The Debian packages that Strata is built from.  Sourced by ./strata.

# Debian 12 packages: the build, the libraries, and promtool, pip for what they name.
PACKAGES=(
  ca-certificates g++ bazel-bootstrap bazel-rules-cc bazel-rules-java
  bazel-rules-proto bazel-platforms bazel-skylib libgrpc++-dev
  protobuf-compiler-grpc protobuf-compiler libprotobuf-dev libabsl-dev
  prometheus-cpp-dev libcivetweb-dev libgtest-dev libgmock-dev
  libbenchmark-dev libpcre2-dev nlohmann-json3-dev libyaml-cpp-dev
  libutf8proc-dev libboost-context-dev prometheus python3 python3-pip
)

# What tests run besides: docker-compose for its `config`, what perf_analyzer is
# linked with, openssl for certificates, Python packages of evaluation/ and the
# load report.
TEST_PACKAGES=(docker-compose libb64-0d openssl python3-grpcio python3-matplotlib
  python3-protobuf)

missing_packages() {
  local package
  for package in "${PACKAGES[@]}"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
      grep -qx installed || printf '%s\n' "$package"
  done
}

install_packages() {
  command -v dpkg-query >/dev/null || die "needs Debian 12 (no dpkg here)"
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} > 0)) || return 0
  say "Installing Debian packages (${#missing[@]} missing): ${missing[*]}"
  local root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "not root, and no sudo; as root run:
  apt-get update && apt-get install --no-install-recommends ${missing[*]}"
    root=(sudo)
  fi
  local apt=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get)
  "${apt[@]}" update -q || die "apt-get update failed: is the network there?"
  forbid_services "${root[@]}"
  trap 'allow_services "${root[@]}"' EXIT
  local status=0
  "${apt[@]}" install -q -y --no-install-recommends "${missing[@]}" </dev/null ||
    status=$?
  trap - EXIT
  allow_services "${root[@]}"
  ((status == 0)) || die "apt-get install failed (status $status)"
  # Wanted for promtool alone: its server shall not start at the next boot either.
  if [[ " ${missing[*]} " == *" prometheus "* ]]; then
    "${root[@]}" env DPKG_MAINTSCRIPT_PACKAGE=prometheus \
      deb-systemd-helper disable prometheus.service >/dev/null 2>&1 || true
  fi
}

# Package scripts start no service while this file is there.
POLICY=/usr/sbin/policy-rc.d
OWN_POLICY=0

forbid_services() {
  [[ ! -e $POLICY ]] || return 0
  printf '#!/bin/sh\nexit 101\n' | "$@" tee "$POLICY" >/dev/null
  "$@" chmod 755 "$POLICY"
  OWN_POLICY=1
}

allow_services() {
  ((OWN_POLICY)) || return 0
  "$@" rm -f "$POLICY"
  OWN_POLICY=0
}

# Whether one of the arguments asks for help.
wants_help() {
  local argument
  for argument in "$@"; do
    if [[ $argument =~ ^(-h|--help)$ ]]; then return 0; fi
  done
  return 1
}

# show_help COMMAND: of a program that needs no more than Python for that.
show_help() {
  PACKAGES=(python3)
  install_packages >&2
  exec "$@" --help
}

# ensure_venv FOLDER REQUIREMENTS [PIP_FLAGS]: a private Python environment with
# just these packages, made anew where the list changed.  pip runs from outside,
# as Debian's venv cannot install it.
ensure_venv() {
  local venv="$1" wanted="$2"
  if cmp -s "$wanted" "$venv/requirements.txt"; then return 0; fi
  install_packages
  say "Installing the Python packages of ${wanted#"$ROOT/"} into $venv"
  mkdir -p "$CACHE"
  rm -rf "$venv"
  /usr/bin/python3 -m venv --without-pip "$venv"
  /usr/bin/python3 -m pip --python "$venv/bin/python" install -q \
    --only-binary :all: --disable-pip-version-check "${@:3}" -r "$wanted" \
    </dev/null || die "pip cannot install ${wanted#"$ROOT/"}: is the network there,
  and the space in $CACHE?"
  cp "$wanted" "$venv/requirements.txt"
}
