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


if __name__ == "__main__":
    unittest.main()
