package scale

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is that of processes, in bytes. PSS counts a page that n processes share as 1/n, so that many
// processes of one program can be added up.
type memory struct{ pss, anonymous int64 }

// processMemory adds up the memory of processes.
func processMemory(pids []int) (memory, error) {
	var sum memory
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			return memory{}, fmt.Errorf("read memory: %w", err)
		}
		one, err := parseRollup(string(text))
		if err != nil {
			return memory{}, err
		}
		sum.pss += one.pss
		sum.anonymous += one.anonymous
	}
	return sum, nil
}

// parseRollup reads the sums of a smaps_rollup file.
func parseRollup(text string) (memory, error) {
	values := map[string]int64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, rest, found := strings.Cut(lines.Text(), ":")
		fields := strings.Fields(rest)
		if !found || len(fields) != 2 || fields[1] != "kB" {
			continue
		}
		kib, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("parse smaps_rollup: %w", err)
		}
		values[name] = kib << 10
	}
	pss, hasPSS := values["Pss"]
	anonymous, hasAnonymous := values["Anonymous"]
	if !hasPSS || !hasAnonymous {
		return memory{}, fmt.Errorf("parse smaps_rollup: Pss or Anonymous is missing")
	}
	return memory{pss: pss, anonymous: anonymous}, nil
}
