package swap

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/certificate"
	"swiftlet/internal/config"
)

// configuration lists the settings that a swap changes. It compares with what the kubelet says that it runs
// with, or else with its files.
func configuration(ctx context.Context, cfg *config.Config, running Kubelet) (changes []string) {
	text, err := configz(ctx, cfg)
	if err == nil {
		var different []string
		if different, err = cfg.Differences(text); err == nil {
			return append(different, cfg.Departures...)
		}
	}
	changes = append(changes, fmt.Sprintf("the running kubelet does not show its configuration, so that its files are compared: %s", err))
	for _, file := range cfg.Files() {
		if info, err := os.Stat(file); err == nil && info.ModTime().After(running.Started) {
			changes = append(changes, fmt.Sprintf("%s: changed after the running kubelet has read it at %s", file, running.Started.Format(time.DateTime)))
		}
	}
	return append(changes, cfg.Departures...)
}

// configz reads the configuration of the running kubelet, as the user of its kubeconfig.
func configz(ctx context.Context, cfg *config.Config) ([]byte, error) {
	if cfg.Flags.Kubeconfig == "" {
		return nil, fmt.Errorf("it has no kubeconfig")
	}
	client, _, err := certificate.NewClientFiles(cfg.Flags.Kubeconfig, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	// The kubelet's serving certificate is often self-signed. Only a process with the rights of a node can
	// listen on its port, and nothing secret is sent.
	secure := &tls.Config{InsecureSkipVerify: true}
	if client != nil {
		secure.Certificates = []tls.Certificate{*client.Current()}
	}
	transport := &http.Transport{TLSClientConfig: secure}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+localAddress(cfg)+"/configz", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET /configz: %s", response.Status)
	}
	return boundedio.ReadAll(response.Body, "/configz", boundedio.Document)
}

func localAddress(cfg *config.Config) string {
	host := cfg.Kubelet.Address
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, strconv.Itoa(int(cfg.Kubelet.Port)))
}
