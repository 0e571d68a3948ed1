"""`python -m kubeslurm_operator`: the operator process, as its pod runs it.

Settings come from the environment (the chart sets them):

    KUBESLURM_LOG_LEVEL     DEBUG, INFO (default), WARNING
    KUBESLURM_LIVENESS      where the liveness probe answers, default http://0.0.0.0:8080/healthz
    KUBESLURM_KUBELET_PORT  where the virtual nodes' logs are served, default 10250
    POD_IP                  the pod's address, at which the API server reaches that port; unset: `kubectl logs` has no answer
"""

from __future__ import annotations

import ipaddress
import logging
import os
import sys
from collections.abc import Mapping

import kopf

from kubeslurm import names
from kubeslurm_operator import watches
from kubeslurm_operator.engine import Engine
from kubeslurm_operator.kube import Kube
from kubeslurm_operator.kubelet import PORT

LIVENESS = "http://0.0.0.0:8080/healthz"


async def connect() -> Engine:
    """The engine on the API server of this pod (or of the kubeconfig)."""
    return Engine(await Kube.connect(), endpoint(os.environ))


def endpoint(environment: Mapping[str, str]) -> tuple[str, int] | None:
    """Where the kubelet endpoint listens; SystemExit where the environment names no address or port."""
    if not (address := environment.get("POD_IP", "")):
        return None
    try:
        ipaddress.ip_address(address)
    except ValueError:
        sys.exit(f"POD_IP: {address!r} is no IP address")
    port = environment.get("KUBESLURM_KUBELET_PORT", str(PORT))
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 2**16):
        sys.exit(f"KUBESLURM_KUBELET_PORT: {port!r} is no port")
    return address, int(port)


def main() -> None:
    """Run until a signal."""
    level = os.environ.get("KUBESLURM_LOG_LEVEL", "INFO").upper()
    if level not in logging.getLevelNamesMapping():
        sys.exit(f"KUBESLURM_LOG_LEVEL: {level!r} is no log level")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    for chatty in ("httpx", "httpcore", "kopf", "aiohttp.access", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    os.environ.setdefault("LOGNAME", names.MANAGER)  # kopf asks for a user name, which the pod's uid has not
    kopf.run(
        registry=watches.registry(connect),
        standalone=True,
        clusterwide=True,
        liveness_endpoint=os.environ.get("KUBESLURM_LIVENESS", LIVENESS),
    )


if __name__ == "__main__":
    main()
