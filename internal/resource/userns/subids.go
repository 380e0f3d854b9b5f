package userns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
)

// Subordinate finds the ids that the machine's administrator has set aside for the user
// "kubelet", as `getsubids` tells. Without that user or that program all ids above the
// host's own are free to give, and enough of them are.
func Subordinate(enough int64) (first, count int64, err error) {
	first, count = Size, enough
	program, err := exec.LookPath("getsubids")
	if err != nil {
		return first, count, nil
	}
	uids, err := exec.Command(program, "kubelet").Output()
	if err != nil {
		return first, count, nil // there is no such user, which is the usual case
	}
	gids, err := exec.Command(program, "-g", "kubelet").Output()
	if err != nil {
		return 0, 0, fmt.Errorf("user kubelet has subordinate user ids but no group ids: %w", err)
	}
	if string(uids) != string(gids) {
		return 0, 0, errors.New("user kubelet has other subordinate user ids than group ids")
	}
	return parseSubordinate(strings.NewReader(string(uids)))
}

// parseSubordinate reads one line of "0: kubelet FIRST COUNT".
func parseSubordinate(r io.Reader) (first, count int64, err error) {
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan(); n++ {
		var index int
		var user string
		if n > 0 {
			return 0, 0, errors.New("user kubelet has several ranges of subordinate ids, of which one is allowed")
		}
		if _, err := fmt.Sscanf(lines.Text(), "%d: %s %d %d", &index, &user, &first, &count); err != nil {
			return 0, 0, fmt.Errorf("read the subordinate ids of user kubelet: %q: %w", lines.Text(), err)
		}
	}
	return first, count, lines.Err()
}
