package standalone

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const ipForwardFile = "/proc/sys/net/ipv4/ip_forward"

// hostState records the host's network setup before Swiftlet changed it: teardown keeps what
// existed then. The file is written once and removed by a complete teardown, so it survives
// crashes and restarts.
type hostState struct {
	Forwarding string   `json:"ipForward"`
	Tables     []string `json:"nftTables"`
	Chains     []string `json:"natChains"`
	CNICache   bool     `json:"cniCache"`
}

func saveHostState(file string) error {
	if _, err := readHostState(file); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	forwarding, err := os.ReadFile(ipForwardFile)
	if err != nil {
		return fmt.Errorf("save host state: %w", err)
	}
	state := hostState{
		Forwarding: strings.TrimSpace(string(forwarding)),
		Tables:     listNftTables(),
		Chains:     listNATChains(),
		CNICache:   exists(cniCache),
	}
	content, err := json.Marshal(state)
	if err != nil {
		return fmt.Errorf("save host state: %w", err)
	}
	_, err = writeIfChanged(file, content, 0o600)
	return err
}

func readHostState(file string) (hostState, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return hostState{}, fmt.Errorf("read host state: %w", err)
	}
	var state hostState
	if err := json.Unmarshal(content, &state); err != nil {
		return hostState{}, fmt.Errorf("read host state from %s: %w", file, err)
	}
	return state, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
