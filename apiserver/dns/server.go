package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
)

// serverType is that of CoreDNS' plugins.
const serverType = "dns"

// corefile is kubeadm's, without what listens on further ports, and without the plugins reload and loop: a new process
// has a new configuration, and the node itself is never a name server that is forwarded to.
func corefile(f flags, nameServers []string) string {
	forward := ""
	if len(nameServers) > 0 {
		forward = "forward . " + strings.Join(nameServers, " ") + " {\n\t\tmax_concurrent 1000\n\t}"
	}
	return fmt.Sprintf(`. {
	errors {
		consolidate 1m .* warning
	}
	kubernetes %[1]s in-addr.arpa ip6.arpa {
		kubeconfig %[2]q
		pods insecure
		fallthrough in-addr.arpa ip6.arpa
	}
	%[3]s
	cache 30 {
		disable success %[1]s
		disable denial %[1]s
	}
	loadbalance
	%[4]s
}
`, f.domain, f.kubeconfig, forward, capture)
}

// plugins are those of the Corefile.
var plugins = []string{"cache", "errors", "forward", "kubernetes", "loadbalance"}

// capture is a plugin without a handler: it keeps the configuration that the others have set up.
const capture = "swiftlet"

// newServer sets up the plugins. It returns when Services are known, or after the start-up timeout of CoreDNS, which
// itself can only be started with sockets that it opens.
func newServer(corefile string) (server *dnsserver.Server, shutdown func() error, err error) {
	// An instance that caddy has not made has no type, so its plugins must be those of any type.
	for _, name := range plugins {
		setUp, err := caddy.DirectiveAction(serverType, name)
		if err != nil {
			return nil, nil, fmt.Errorf("set up CoreDNS: %w", err)
		}
		caddy.RegisterPlugin(name, caddy.Plugin{Action: setUp})
	}
	var config *dnsserver.Config
	dnsserver.Directives = append(dnsserver.Directives, capture)
	caddy.RegisterPlugin(capture, caddy.Plugin{Action: func(c *caddy.Controller) error {
		config = dnsserver.GetConfig(c)
		return nil
	}})
	instance := &caddy.Instance{Storage: map[any]any{}}
	input := caddy.CaddyfileInput{Filepath: "Corefile", Contents: []byte(corefile), ServerTypeName: serverType}
	if err := caddy.ValidateAndExecuteDirectives(input, instance, false); err != nil {
		return nil, nil, fmt.Errorf("set up CoreDNS: %w", err)
	}
	if server, err = dnsserver.NewServer("dns://:53", []*dnsserver.Config{config}); err != nil {
		return nil, nil, fmt.Errorf("set up CoreDNS: %w", err)
	}
	if err := calls(instance.OnFirstStartup, instance.OnStartup)(); err != nil {
		return nil, nil, fmt.Errorf("start CoreDNS: %w", err)
	}
	return server, calls(instance.OnShutdown, instance.OnFinalShutdown), nil
}

// calls returns a function that calls all functions of the lists.
func calls(lists ...[]func() error) func() error {
	return func() (err error) {
		for _, call := range slices.Concat(lists...) {
			err = errors.Join(err, call())
		}
		return err
	}
}
