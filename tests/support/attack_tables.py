"""All tables of attacks, by the promise of a sandbox that they try to break."""

import attacks_channel
import attacks_first_process
import attacks_kernel
import attacks_limits
import attacks_network
import attacks_processes
import attacks_reading
import attacks_writing
from attack import Attack

TABLES: dict[str, tuple[Attack, ...]] = {
    "the first process is out of reach": attacks_first_process.ATTACKS,
    "the owner's channel is out of reach": attacks_channel.ATTACKS,
    "refused system calls do nothing": attacks_kernel.ATTACKS,
    "host files are hidden": attacks_reading.FILES,
    "secrets of the host are hidden": attacks_reading.SECRETS,
    "nothing outside can be changed": attacks_writing.ATTACKS,
    "nothing outside can be reached": attacks_network.ATTACKS,
    "no rights can be gained": attacks_writing.RIGHTS,
    "nothing outlives its command": attacks_processes.ATTACKS,
    "limits hold and siblings do not feel it": attacks_limits.ATTACKS,
    "shared stores are not used up": attacks_limits.SHARED_STORES,
}


def leading(attacks: tuple[Attack, ...]) -> Attack:
    """Returns the attack that stands for its table: the first that succeeds under an ablation."""
    return next((attack for attack in attacks if attack.ablation), attacks[0])
