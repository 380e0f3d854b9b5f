package network

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/cni/libcni"
)

var errNoNetwork = errors.New("no CNI configuration")

// load reads the first configuration of the directory. It is read each time: it may change at any time, and
// sandboxes are rarely created.
func (n *Network) load() (*libcni.NetworkConfigList, error) {
	files, err := libcni.ConfFiles(n.config.ConfDir, []string{".conf", ".conflist", ".json"})
	if err != nil {
		return nil, fmt.Errorf("list CNI configurations: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s", errNoNetwork, n.config.ConfDir)
	}
	list, err := libcni.NetworkConfFromFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("read CNI configuration %s: %w", files[0], err)
	}
	if len(list.Plugins) == 0 {
		return nil, fmt.Errorf("read CNI configuration %s: it has no plugins", files[0])
	}
	return list, nil
}

// Ready returns why sandboxes cannot be connected, or nil.
func (n *Network) Ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, err := n.load()
	if err != nil {
		return err
	}
	if err := n.cni.GetStatusNetworkList(ctx, list); err != nil { // runs plugins of CNI 1.1 only
		return fmt.Errorf("network %s: %w", list.Name, err)
	}
	return nil
}
