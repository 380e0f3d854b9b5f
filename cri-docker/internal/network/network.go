// Package network connects sandboxes with CNI plugins. What is connected is known from libcni's cache, which
// also has the configuration that a sandbox was connected with.
package network

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

const (
	ifName = "eth0"
	// limit bounds one call of all plugins of a network.
	limit = 3 * time.Minute
)

// Config says where configurations, plugins and the cache are.
type Config struct {
	ConfDir, CacheDir string
	BinDirs           []string
}

// Network connects sandboxes to the first network of the directory of configurations.
type Network struct {
	config Config
	cni    *libcni.CNIConfig

	mu  sync.Mutex
	ips map[string][]string // of connected sandboxes; they do not change
}

// New does not read anything yet.
func New(c Config) *Network {
	return &Network{config: c, cni: libcni.NewCNIConfigWithCacheDir(c.BinDirs, c.CacheDir, nil), ips: map[string][]string{}}
}

// Attach connects a sandbox and returns when it has addresses. After an error nothing is left.
func (n *Network) Attach(ctx context.Context, p Pod, netns string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	list, err := n.load()
	if err != nil {
		return fmt.Errorf("attach network: %w", err)
	}
	conf, err := p.runtimeConf(netns)
	if err != nil {
		return fmt.Errorf("attach network: %w", err)
	}
	if _, err := n.cni.AddNetworkList(ctx, list, conf); err != nil {
		err = fmt.Errorf("attach network %s: %w", list.Name, err)
		cleanup, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit) // also if the caller gave up
		defer cancel()
		if deleteErr := n.cni.DelNetworkList(cleanup, list, conf); deleteErr != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", deleteErr))
		}
		return err
	}
	return nil
}

// Detach disconnects a sandbox. It may be repeated. netns is empty if the pause process has ended.
func (n *Network) Detach(ctx context.Context, p Pod, netns string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	attached, err := n.attachments(p.ID)
	if err != nil {
		return fmt.Errorf("detach network: %w", err)
	}
	if len(attached) == 0 {
		return n.detachUnknown(ctx, p, netns)
	}
	for _, a := range attached {
		if err := n.detach(ctx, a, netns); err != nil {
			return err
		}
	}
	return nil
}

// detach disconnects with the configuration that was used to connect.
func (n *Network) detach(ctx context.Context, a *libcni.NetworkAttachment, netns string) error {
	list, err := libcni.NetworkConfFromBytes(a.Config)
	if err != nil {
		return fmt.Errorf("detach network %s: cached configuration: %w", a.Network, err)
	}
	conf := &libcni.RuntimeConf{ContainerID: a.ContainerID, NetNS: netns, IfName: a.IfName, Args: a.CniArgs, CapabilityArgs: a.CapabilityArgs}
	if err := n.cni.DelNetworkList(ctx, list, conf); err != nil {
		return fmt.Errorf("detach network %s: %w", a.Network, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ips, a.ContainerID)
	return nil
}

// detachUnknown cleans up after an Attach that was interrupted before it was recorded. Plugins accept a DEL
// without an ADD.
func (n *Network) detachUnknown(ctx context.Context, p Pod, netns string) error {
	list, err := n.load()
	if errors.Is(err, errNoNetwork) {
		return nil // what has never been there connected nothing
	}
	if err != nil {
		return fmt.Errorf("detach network: %w", err)
	}
	if _, err := invoke.FindInPath(list.Plugins[0].Network.Type, n.config.BinDirs); err != nil {
		return nil // the first plugin creates the interface
	}
	conf, err := p.runtimeConf(netns)
	if err != nil {
		return fmt.Errorf("detach network: %w", err)
	}
	if err := n.cni.DelNetworkList(ctx, list, conf); err != nil {
		return fmt.Errorf("detach network %s: %w", list.Name, err)
	}
	return nil
}

// Attached returns a function that says whether a sandbox is connected, from one look at the cache.
func (n *Network) Attached() (func(id string) bool, error) {
	files, err := os.ReadDir(filepath.Join(n.config.CacheDir, "results"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list attached networks: %w", err)
	}
	connected := map[string]bool{}
	for _, file := range files {
		// The name is NETWORK-ID-INTERFACE; only the network's name may have hyphens.
		parts := strings.Split(file.Name(), "-")
		if len(parts) >= 3 {
			connected[parts[len(parts)-2]] = true
		}
	}
	return func(id string) bool { return connected[id] }, nil
}

// IPs are the addresses of a connected sandbox, the first one first.
func (n *Network) IPs(id string) ([]string, error) {
	n.mu.Lock()
	ips, ok := n.ips[id]
	n.mu.Unlock()
	if ok {
		return ips, nil
	}
	ips, err := n.readIPs(id)
	if err != nil || len(ips) == 0 {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ips[id] = ips
	return ips, nil
}

func (n *Network) readIPs(id string) ([]string, error) {
	attached, err := n.attachments(id)
	if err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	var ips []string
	for _, a := range attached {
		list := &libcni.NetworkConfigList{Name: a.Network, CNIVersion: types100.ImplementedSpecVersion}
		cached, err := n.cni.GetNetworkListCachedResult(list, &libcni.RuntimeConf{ContainerID: id, IfName: a.IfName})
		if err != nil {
			return nil, fmt.Errorf("read addresses: %w", err)
		}
		if cached == nil {
			continue
		}
		result, err := types100.NewResultFromResult(cached)
		if err != nil {
			return nil, fmt.Errorf("read addresses: %w", err)
		}
		for _, ip := range result.IPs {
			ips = append(ips, ip.Address.IP.String())
		}
	}
	return ips, nil
}

func (n *Network) attachments(id string) ([]*libcni.NetworkAttachment, error) {
	if _, err := os.Stat(filepath.Join(n.config.CacheDir, "results")); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return n.cni.GetCachedAttachments(id)
}
