# shellcheck shell=bash
# ./strata up: the server, shown at work.  Sourced by ./strata.

DEMO_PROMPT="Why is the sky blue?"

# The value of --NAME=VALUE (or --NAME VALUE) among the arguments after the
# first two, the last one that counts; else the second argument.
flag_value() {
  local name="$1" value="$2" previous="" argument
  for argument in "${@:3}"; do
    if [[ $previous =~ ^--?$name$ ]]; then value="$argument"; fi
    if [[ $argument =~ ^--?$name= ]]; then value="${argument#*=}"; fi
    previous="$argument"
  done
  printf '%s\n' "$value"
}

check_ports() {
  local name port
  for name in grpc_port=8001 http_port=8002; do
    port="$(flag_value "${name%=*}" "${name#*=}" "$@")"
    if [[ $port != 0 ]] && (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      die "port $port is taken; choose others:
  ./strata up --grpc_port=9001 --http_port=9002"
    fi
  done
}

SERVER_PID=""
RUN_DIR=""

start_server() {
  mkdir -p "$CACHE"
  RUN_DIR="$(mktemp -d "$CACHE/run.XXXXXX")"
  trap stop_server EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  say "Starting the server"
  : >"$RUN_DIR/stdout"
  # In a process group of its own: Ctrl-C reaches this script alone, which then
  # lets the server drain.
  set -m
  "$(binary_of //server:strata_server)" "$@" >"$RUN_DIR/stdout" 2>"$RUN_DIR/server.log" </dev/null &
  SERVER_PID=$!
  set +m
  local tries
  for ((tries = 0; tries < 1500; ++tries)); do
    grep -q '^listening ' "$RUN_DIR/stdout" && return 0
    if ! kill -0 "$SERVER_PID" 2>/dev/null; then
      SERVER_PID=""
      break
    fi
    sleep 0.2
  done
  tail -n 20 "$RUN_DIR/server.log" >&2
  rm -rf "$RUN_DIR"
  die "the server did not come up; its log ends above"
}

# Lets it drain.  Its exit status.
stop_server() {
  local pid="$SERVER_PID" status=0
  SERVER_PID=""
  [[ -n $pid ]] || return 0
  say "Stopping the server"
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid" || status=$?
  if ((status != 0)); then
    tail -n 20 "$RUN_DIR/server.log" >&2
    printf 'strata: the server ended with status %d\n' "$status" >&2
  fi
  rm -rf "$RUN_DIR"
  return "$status"
}

# Where the server listens for `grpc` or `http`.
address_of() {
  grep -m 1 '^listening ' "$RUN_DIR/stdout" | grep -o " $1=[^ ]*" | cut -d= -f2
}

show_strategies() {
  say "One prompt under three strategies, through the gRPC API"
  "$(binary_of //client:strata_compare)" --address="$(address_of grpc)" "$DEMO_PROMPT" ||
    die "the comparison failed"
}

show_addresses() {
  local grpc http
  grpc="$(address_of grpc)" http="$(address_of http)"
  say "Serving"
  printf '  gRPC     %s   (strata.v1.Inference)\n' "$grpc"
  printf '  metrics  http://%s/metrics\n' "$http"
  printf '  health   http://%s/health/ready\n' "$http"
  printf '  log      %s\n' "$RUN_DIR/server.log"
  printf '  try      ./strata generate "%s" --strategy=every=2 --temperature=0.3 --repetition_penalty=1.1 --address=%s\n' \
    "$DEMO_PROMPT" "$grpc"
}

up() {
  local check=0 argument flags=()
  for argument in "$@"; do
    case "$argument" in
      --check) check=1 ;;
      -h | --help) usage && return 0 ;;
      *) flags+=("$argument") ;;
    esac
  done
  if ((check)); then flags=(--grpc_port=0 --http_port=0 "${flags[@]}"); fi
  # Mistakes show before the long part, but for those that only the server sees.
  local model
  model="$(flag_value model "" "${flags[@]}")"
  [[ -z $model || -e $model ]] || die "--model=$model is not there"
  check_ports "${flags[@]}"
  install_packages
  build "${BINARIES[@]}"
  if [[ -z $model ]]; then
    fetch_model
    flags=("--model=$MODEL" "--adapter=$DEMO_ADAPTER" "${flags[@]}")
  fi
  start_server "${flags[@]}"
  show_strategies
  if ((check)); then
    stop_server || die "the server did not end well"
    say "All is well"
    return 0
  fi
  show_addresses
  say "Ctrl-C stops the server"
  trap 'exit 0' INT TERM
  local status=0
  wait "$SERVER_PID" || status=$?
  SERVER_PID=""
  tail -n 20 "$RUN_DIR/server.log" >&2
  die "the server ended by itself, with status $status; its log ends above"
}
