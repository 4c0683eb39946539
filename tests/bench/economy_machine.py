"""What machine a benchmark runs on, and whether it has it to itself."""
import os
import resource
import time


def cpu_name():
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown CPU")


def num_cores():
    return len(os.sched_getaffinity(0))


class OthersWatch:
    """From construction to share(): how much of the cores' time others used, this process and its ended children left
    out."""

    def __init__(self):
        self._begin = self._now()

    def share(self):
        passed, others = (end - begin for begin, end in zip(self._begin, self._now()))
        return min(1.0, max(0.0, others / (passed * os.cpu_count())))

    @staticmethod
    def _now():
        """Seconds: of the clock, and of all cores' work for others."""
        with open("/proc/stat", encoding="utf-8") as stat:
            # user nice system idle iowait irq softirq steal, in ticks: proc(5).
            ticks = [int(field) for field in stat.readline().split()[1:9]]
        busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return time.monotonic(), busy - sum(usage.ru_utime + usage.ru_stime for usage in usages)
