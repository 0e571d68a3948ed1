"""The command `kubeslurm`: what the operator would do, without a cluster.

    kubeslurm render -f pool.yaml                          slurm.conf and gres.conf
    kubeslurm translate -f job.yaml --cluster pool.yaml    the sbatch script, or its REST body
    kubeslurm translate --to pytorchjob job.sh             the way back: the PyTorchJob of an sbatch script

Bad input ends with exit status 2 and one line on stderr that names the field.
"""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from kubeslurm.commands.render import render_command
from kubeslurm.commands.translate import translate_command
from kubeslurm.errors import BridgeError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("kubeslurm"), prog_name="kubeslurm")
def cli() -> None:
    """One GPU pool for Slurm and Kubernetes."""


cli.add_command(render_command)
cli.add_command(translate_command)


def main() -> None:
    """The entry point."""
    try:
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except BridgeError as error:
        click.echo(f"kubeslurm: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
