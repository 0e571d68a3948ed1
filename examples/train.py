"""The reference job's program: every rank meets the others at MASTER_ADDR:MASTER_PORT and they add up their ranks.

Standard library only. Rank 0 listens, the others connect, send their rank and wait for the sum: a wrong RANK, WORLD_SIZE,
MASTER_ADDR or MASTER_PORT ends the job with an error instead of a wrong answer. Each rank prints one line.
"""

import os
import socket
import struct
import sys
import time

PATIENCE = 90.0
MESSAGE = struct.Struct("!q")


def need(name: str) -> str:
    """The variable, or the end."""
    value = os.environ.get(name)
    if not value:
        sys.exit(f"{name} is not set")
    return value


def receive(connection: socket.socket) -> int:
    """One number."""
    data = b""
    while len(data) < MESSAGE.size:
        piece = connection.recv(MESSAGE.size - len(data))
        if not piece:
            sys.exit("the other end is gone")
        data += piece
    return int(MESSAGE.unpack(data)[0])


def lead(port: int, world: int) -> int:
    """Rank 0: hear every other rank once, tell all of them the sum."""
    with socket.create_server(("", port), backlog=world) as server:
        server.settimeout(PATIENCE)
        others = [server.accept()[0] for _ in range(world - 1)]
    for other in others:
        other.settimeout(PATIENCE)
    ranks = [receive(other) for other in others]
    if sorted(ranks) != list(range(1, world)):
        sys.exit(f"each of the ranks 1 to {world - 1} was to come once; {len(set(ranks))} different ones came")
    for other in others:
        other.sendall(MESSAGE.pack(sum(ranks)))
        other.close()
    return sum(ranks)


def follow(address: str, port: int, rank: int) -> int:
    """Any other rank."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection((address, port), timeout=PATIENCE)
            break
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"rank {rank} can't reach {address}:{port}: {error}")
            time.sleep(0.2)
    with connection:
        connection.sendall(MESSAGE.pack(rank))
        return receive(connection)


def main() -> None:
    """Check what this rank was told, meet the others, check the sum."""
    rank, world = int(need("RANK")), int(need("WORLD_SIZE"))
    local, local_world = int(need("LOCAL_RANK")), int(need("LOCAL_WORLD_SIZE"))
    address, port = need("MASTER_ADDR"), int(need("MASTER_PORT"))
    gpus = need("CUDA_VISIBLE_DEVICES").split(",")
    if rank % local_world != local or len(set(gpus)) != local_world:
        sys.exit(f"rank {rank} is local rank {local} of {local_world} with GPUs {gpus}")
    total = lead(port, world) if rank == 0 else follow(address, port, rank)
    if total != world * (world - 1) // 2:
        sys.exit(f"the sum of all ranks is {total}, not {world * (world - 1) // 2}")
    hold = float(os.environ.get("HOLD_SECONDS", "0"))
    time.sleep(hold)
    print(
        f"rank {rank} of {world} on {socket.gethostname()} local {local} gpus {','.join(gpus)} sum {total}", flush=True
    )


if __name__ == "__main__":
    main()
