package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"path/filepath"
	"slices"

	"github.com/fsnotify/fsnotify"
	"github.com/miekg/dns"
)

// maxNameServers is how many CoreDNS forwards to.
const maxNameServers = 15

// nameServers follows the name servers of a resolv.conf.
type nameServers struct {
	file    string
	own     netip.Addr // is not forwarded to
	servers []string
	events  *fsnotify.Watcher
}

// watchNameServers reads the file, which need not exist. Later changes are not missed.
func watchNameServers(file string, own netip.Addr) (*nameServers, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", file, err)
	}
	n := &nameServers{file: file, own: own, events: events}
	// Files are replaced by renames, and may be links to files that are.
	dirs := []string{filepath.Dir(file)}
	if target, err := filepath.EvalSymlinks(file); err == nil {
		dirs = append(dirs, filepath.Dir(target))
	}
	for _, dir := range dirs {
		if err := events.Add(dir); err != nil {
			return nil, errors.Join(fmt.Errorf("watch %s: %w", file, err), events.Close())
		}
	}
	if n.servers, err = n.read(); err != nil {
		return nil, errors.Join(err, events.Close())
	}
	return n, nil
}

func (n *nameServers) close() { n.events.Close() }

func (n *nameServers) read() ([]string, error) {
	config, err := dns.ClientConfigFromFile(n.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", n.file, err)
	}
	servers := slices.DeleteFunc(config.Servers, func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err != nil || address.Unmap() == n.own
	})
	return servers[:min(len(servers), maxNameServers)], nil
}

// run returns an error when the name servers change, nil when ctx is done.
func (n *nameServers) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-n.events.Errors:
			return fmt.Errorf("watch %s: %w", n.file, err)
		case <-n.events.Events:
		}
		// A file that is being written has no name servers yet: the next event is for those.
		if now, err := n.read(); err == nil && len(now) > 0 && !slices.Equal(now, n.servers) {
			return fmt.Errorf("the name servers of %s are now %v, were %v: starting again", n.file, now, n.servers)
		}
	}
}
