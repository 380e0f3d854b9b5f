package standalone

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const forwardingSwitch = "/proc/sys/net/ipv4/ip_forward"

// before is what the machine looked like when nothing of ours was on it: what was there
// stays when we go. It is written once, and removed by a complete teardown, so that it
// outlives crashes and take-overs.
type before struct {
	Forwarding string   `json:"ipForward"`
	Tables     []string `json:"nftTables"`
	Chains     []string `json:"natChains"`
	CNICache   bool     `json:"cniCache"`
}

func rememberBefore(file string) error {
	if _, err := readBefore(file); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	forwarding, err := os.ReadFile(forwardingSwitch)
	if err != nil {
		return fmt.Errorf("look at the machine: %w", err)
	}
	state := before{
		Forwarding: strings.TrimSpace(string(forwarding)),
		Tables:     filterTables(),
		Chains:     natChains(),
		CNICache:   exists(cniCache),
	}
	content, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("look at the machine: %w", err)
	}
	_, err = writeIfChanged(file, content, 0o600)
	return err
}

func readBefore(file string) (before, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return before{}, fmt.Errorf("recall the machine's state: %w", err)
	}
	var state before
	if err := json.Unmarshal(content, &state); err != nil {
		return before{}, fmt.Errorf("recall the machine's state from %s: %w", file, err)
	}
	return state, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
