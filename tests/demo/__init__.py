"""The demo: `python -m tests.demo up|show|down`, which is what `make demo` and `make demo-down` call.

One Kubernetes (the test cluster, on the real kind), the chart by the real helm, the reference pool and the reference
job of `examples/`. What always holds: `up` may be called again at any time and brings everything to the same end; what
it leaves on the machine is `.demo/`, the cluster of name `demo`, and both go with `down`.
"""
