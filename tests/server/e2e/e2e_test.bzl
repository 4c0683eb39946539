"""Tests of servers over real sockets."""

def e2e_test(name, srcs = None, **kwargs):
    """A cc_test of NAME.cc that ThreadSanitizer is not run on.

    Args:
      name: of the test.
      srcs: its sources, if they are more than NAME.cc.
      **kwargs: of cc_test.
    """
    native.cc_test(
        name = name,
        srcs = srcs or [name + ".cc"],
        tags = ["no_tsan"],
        **kwargs
    )
