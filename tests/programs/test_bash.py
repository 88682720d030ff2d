"""bash forking thousands of times."""

import unittest

from programs import ProgramTest

SCRIPT = r"""
sum=0
for ((i = 0; i < 3000; i++)); do
    part=$(echo $((i * i)))                  # a fork and a pipe each
    sum=$((sum + part))
    if ((i % 10 == 0)); then
        words=($(printf '%s\n' c b a "$i" | sort))
        (exit $((i % 7))) || failures=$((failures + 1))
        table[i]="${words[*]}"
    fi
done
printf '%s\n' "$sum" "$failures" "${#table[@]}" "${table[2990]}"
declare -A map
for ((i = 0; i < 20000; i++)); do map[key$i]=$(( i * 3 )); done
echo "${#map[@]} ${map[key777]}"
for ((i = 0; i < 200; i++)); do (sleep 0) & done
wait
exit 3
"""


class Bash(ProgramTest):
    title = "bash"
    programs = ("bash", "sort")
    version = ("bash", "--version")
    quick = True

    def test_forks(self) -> None:
        """4,000 forks, pipes and background jobs, arrays and maps"""
        result = self.compare(["bash", "-c", SCRIPT], served="bash")
        self.assertEqual(result.status, 3)
        self.assertEqual(result.stdout.splitlines()[0], b"8995500500")


STORM = r"""
trap 'caught=$((caught + 1)); words=($(echo a b c)); list+=("$caught ${words[*]}")' USR1
( for ((i = 0; i < 60; i++)); do kill -USR1 $$; sleep 0.05; done ) &
for ((round = 0; round < 40; round++)); do
    for ((i = 0; i < 50; i++)); do ( x=$(seq $i | tail -1); y=${x//1/2}; exit ${#y} ) & done
    wait
    seq 2000 | while read -r n; do printf '%s\n' "$((n * round))"; done | sort -n | md5sum
    coproc { while read -r line; do echo "<$line>"; done; }
    for ((i = 0; i < 50; i++)); do echo "$round.$i" >&"${COPROC[1]}"; read -r back <&"${COPROC[0]}"; out+=$back; done
    kill $COPROC_PID; wait $COPROC_PID 2>/dev/null
    cat <(seq 100) <(seq 50) | tac | head -3
    declare -A map; for ((i = 0; i < 500; i++)); do map[$round.$i]=$(($i * 7)); done
done
echo ${#out} ${#map[@]}; ((caught > 20)) && echo caught
"""


class ForkStorm(ProgramTest):
    title = "bash"
    programs = ("bash",)
    version = ("bash", "--version")

    def test_storm(self) -> None:
        """2,000 background subshells, pipelines, coprocesses, process substitutions, traps that allocate"""
        result = self.compare(["bash", "-c", STORM], served="bash", seconds=500)
        self.assertTrue(result.stdout.endswith(b" 20000\ncaught\n"), result.stdout[-200:])


if __name__ == "__main__":
    unittest.main()
