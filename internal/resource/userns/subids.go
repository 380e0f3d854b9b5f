package userns

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"swiftlet/internal/boundedio"
)

// Subordinate returns the subordinate ids of the user "kubelet", as getsubids reports them.
// Without that user or that program, it returns the needed number of ids above the host's own.
func Subordinate(needed int64) (first, count int64, err error) {
	first, count = Size, needed
	program, err := exec.LookPath("getsubids")
	if err != nil {
		return first, count, nil
	}
	uids, err := boundedio.Output(exec.Command(program, "kubelet"), boundedio.Small)
	if err != nil {
		return first, count, nil // usually there is no such user
	}
	gids, err := boundedio.Output(exec.Command(program, "-g", "kubelet"), boundedio.Small)
	if err != nil {
		return 0, 0, fmt.Errorf("read subordinate group ids of user kubelet, which has user ids: %w", err)
	}
	if string(uids) != string(gids) {
		return 0, 0, errors.New("read subordinate ids of user kubelet: user ids and group ids differ")
	}
	return parseSubordinate(strings.NewReader(string(uids)))
}

// parseSubordinate parses one line of "0: kubelet FIRST COUNT".
func parseSubordinate(r *strings.Reader) (first, count int64, err error) {
	lines := bufio.NewScanner(r)
	for n := 0; lines.Scan(); n++ {
		var index int
		var user string
		if n > 0 {
			return 0, 0, errors.New("read subordinate ids of user kubelet: more than one range")
		}
		if _, err := fmt.Sscanf(lines.Text(), "%d: %s %d %d", &index, &user, &first, &count); err != nil {
			return 0, 0, fmt.Errorf("read subordinate ids of user kubelet: %q: %w", lines.Text(), err)
		}
		if first < 0 || count < 0 {
			return 0, 0, fmt.Errorf("read subordinate ids of user kubelet: %q: negative number", lines.Text())
		}
	}
	return first, count, lines.Err()
}
