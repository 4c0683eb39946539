"""Rules for .cu files, which two compilers build: nvcc and, for tests, g++."""

# What the product runs on: A100, Hopper with its own instructions, and what is
# newer by compiling the PTX of compute_100 when it starts.
_GENCODE = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-gencode=arch=compute_100,code=compute_100",
]

# nvcc names its temporary files by its process id, and those of two sandboxes are
# often the same: each gets a folder of its own.
_NVCC = """
export TMPDIR="$(mktemp -d)"
trap 'rm -rf "$TMPDIR"' EXIT
/usr/local/cuda/bin/nvcc "$@"
"""

def _nvcc_objects_impl(ctx):
    headers = [dep[CcInfo].compilation_context.headers for dep in ctx.attr.deps]
    objects = []
    for src in ctx.files.srcs:
        obj = ctx.actions.declare_file(src.basename + ".o")
        ctx.actions.run_shell(
            command = _NVCC,
            arguments = ctx.attr.copts + ["-I.", "-c", src.path, "-o", obj.path],
            inputs = depset([src], transitive = headers),
            outputs = [obj],
            mnemonic = "NvccCompile",
            use_default_shell_env = True,
        )
        objects.append(obj)
    return [DefaultInfo(files = depset(objects))]

_nvcc_objects = rule(
    implementation = _nvcc_objects_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
    },
)

def cuda_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """Like cc_library, for .cu files.

    Defines `name`, built by nvcc, and for tests `name`_on_cpu, the same sources
    built by g++ against //tests/testing/cuda_on_cpu.  They define the same
    symbols, so a program links one of them.
    """
    native.cc_library(name = name + "_hdrs", hdrs = hdrs, deps = deps)
    _nvcc_objects(
        name = name + "_objects",
        srcs = srcs,
        deps = [name + "_hdrs"],
        copts = [
            "-std=c++20",
            "-O3",
            "-lineinfo",
            "-Xcompiler=-fPIC,-Wall,-Werror",
        ] + _GENCODE,
        tags = ["manual"],  # as all that needs the toolkit
    )
    native.cc_library(
        name = name,
        srcs = [name + "_objects"],
        hdrs = hdrs,
        linkstatic = True,  # cudart is: a library of its own would lack it
        deps = deps + ["@cuda//:cudart"],
        tags = ["manual"],
        **kwargs
    )

    # cc_library takes no .cu, so a .cc of one line includes each.
    for src in srcs:
        native.genrule(
            name = src + "_on_cpu",
            outs = [src + "_on_cpu.cc"],
            cmd = "echo '#include \"%s/%s\"' > $@" % (native.package_name(), src),
        )
    native.cc_library(
        name = name + "_on_cpu",
        testonly = True,
        srcs = [src + "_on_cpu.cc" for src in srcs],
        hdrs = hdrs,
        textual_hdrs = srcs,
        # Kernels read memory as other types than it was written, as nvcc lets
        # them; unoptimised fibers are slow; "#pragma unroll" is nvcc's.
        copts = [
            "-O2",
            "-fno-strict-aliasing",
            "-Wno-unknown-pragmas",
        ],
        deps = deps + ["//tests/testing/cuda_on_cpu"],
        **kwargs
    )

def kernel_test(name, kernels, deps = [], **kwargs):
    """A cc_test of `kernels`, a cuda_library.

    Defines `name`, which runs them on the CPU, and `name`_gpu, which runs them
    on a GPU: built where the toolkit is, run by tests/gpu/check.
    """
    deps = deps + ["//third_party:gtest_main"]
    native.cc_test(
        name = name,
        deps = deps + [kernels + "_on_cpu"],
        **kwargs
    )
    native.cc_test(
        name = name + "_gpu",
        deps = deps + [kernels],
        tags = ["manual"],
        **kwargs
    )
