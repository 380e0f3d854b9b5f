package standalone

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"swiftlet/internal/boundedio"
	"swiftlet/internal/checkpoint"
)

// hostConfigs is where containerd looks for the configuration of registries that no flag names.
const hostConfigs = "/etc/containerd/certs.d"

// Mirror is a server that has images of a registry.
type Mirror struct {
	Host string // of the registry, as in names of images
	URL  string
}

// ParseMirror reads HOST=URL.
func ParseMirror(text string) (Mirror, error) {
	host, address, found := strings.Cut(text, "=")
	if !found || host == "" || strings.ContainsAny(host, "/\\ ") || host == "." || host == ".." {
		return Mirror{}, fmt.Errorf("%q is not HOST=URL, such as docker.io=https://mirror.example.com", text)
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" {
		return Mirror{}, fmt.Errorf("the mirror %q of %s is not an http or https URL with a host, and without credentials", address, host)
	}
	return Mirror{Host: host, URL: strings.TrimSuffix(address, "/")}, nil
}

// Registries says how images are pulled.
type Registries struct {
	// Mirrors are tried in this order before the registry itself.
	Mirrors []Mirror
	// Config is a docker configuration (config.json) with credentials, or a directory that has one and, for each
	// registry, a directory HOST with hosts.toml or ca.crt, as in /etc/containerd/certs.d. It may be empty.
	Config string
}

// registryPlaces are the files of Registries.Config.
type registryPlaces struct {
	credentials string // empty: none
	hosts       string // directory of directories; empty: none
}

// places finds the files, and checks them as far as they can be checked without a registry.
func (r Registries) places() (registryPlaces, error) {
	if r.Config == "" {
		return registryPlaces{}, nil
	}
	info, err := os.Stat(r.Config)
	if err != nil {
		return registryPlaces{}, err
	}
	if !info.IsDir() {
		return registryPlaces{credentials: r.Config}, checkCredentials(r.Config)
	}
	found := registryPlaces{hosts: r.Config}
	file := filepath.Join(r.Config, "config.json")
	if exists(file) {
		found.credentials = file
		err = checkCredentials(file)
	}
	for _, m := range r.Mirrors {
		for _, dir := range hostDirs(r.Config, m.Host) {
			if exists(filepath.Join(dir, "hosts.toml")) {
				return found, fmt.Errorf("%s has hosts.toml, and --registry-mirror names the same registry; use one of them", dir)
			}
		}
	}
	return found, err
}

func checkCredentials(file string) error {
	content, err := boundedio.ReadFile(file, boundedio.Small)
	if err != nil {
		return err
	}
	var config struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("%s is not a docker config.json: %w", file, err)
	}
	if len(config.Auths) == 0 {
		return fmt.Errorf("%s has no credentials in \"auths\"; credential helpers of docker are not supported", file)
	}
	return nil
}

// hostDirs are the names that containerd looks for.
func hostDirs(dir, host string) []string {
	names := []string{filepath.Join(dir, host)}
	if i := strings.LastIndex(host, ":"); i > 0 {
		names = append(names, filepath.Join(dir, host[:i]+"_"+host[i+1:]+"_"))
	}
	return names
}

// writeRegistries writes containerd's configuration of mirrors, and leads the agent to the credentials. It replaces
// what an earlier instance has written.
func writeRegistries(p Paths, r Registries) error {
	places, err := r.places()
	if err != nil {
		return fmt.Errorf("configure registries: %w", err)
	}
	if err := os.RemoveAll(p.registries()); err != nil {
		return fmt.Errorf("configure registries: %w", err)
	}
	for host, content := range hostFiles(r.Mirrors, places.hosts) {
		dir := filepath.Join(p.registries(), host)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("configure registries: %w", err)
		}
		if _, err := writeIfChanged(filepath.Join(dir, "hosts.toml"), []byte(content), 0o600); err != nil {
			return fmt.Errorf("configure registries: %w", err)
		}
	}
	if r.configPath(p) == p.registries() {
		for _, dir := range []string{places.hosts, hostConfigs} {
			if err := linkHosts(p.registries(), dir); err != nil {
				return fmt.Errorf("configure registries: %w", err)
			}
		}
	}
	if err := linkCredentials(filepath.Join(p.AgentRoot(), "config.json"), places.credentials); err != nil {
		return fmt.Errorf("configure registries: %w", err)
	}
	return nil
}

// hostFiles returns the hosts.toml of each registry that has mirrors. The authority of a mirror is that of its own
// directory, if it has one.
func hostFiles(mirrors []Mirror, hosts string) map[string]string {
	files := map[string]string{}
	for _, m := range mirrors {
		entry := "[host." + strconv.Quote(m.URL) + "]\n  capabilities = [\"pull\", \"resolve\"]\n"
		if u, err := url.Parse(m.URL); err == nil && hosts != "" {
			for _, dir := range hostDirs(hosts, u.Host) {
				if ca := filepath.Join(dir, "ca.crt"); exists(ca) {
					entry += "  ca = " + strconv.Quote(ca) + "\n"
				}
			}
		}
		files[m.Host] += entry
	}
	return files
}

// linkCredentials makes file a link to target, so that changes take effect at once, and removes the link of an
// earlier instance if target is empty. A file that is no link is the user's.
func linkCredentials(file, target string) error {
	info, err := os.Lstat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isLink := err == nil && info.Mode()&fs.ModeSymlink != 0
	switch {
	case target == "" && isLink:
		return os.Remove(file)
	case target == "":
		return nil
	case err == nil && !isLink:
		return fmt.Errorf("%s has credentials already; remove it, or start without --registry-config", file)
	}
	return checkpoint.ReplaceLink(file, target)
}

// linkHosts links to the directories of registries in dir that have no other configuration: containerd takes a single
// directory of them.
func linkHosts(registries, dir string) error {
	hosts, err := os.ReadDir(dir)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(registries, 0o700); err != nil {
		return err
	}
	for _, h := range hosts {
		target := filepath.Join(dir, h.Name())
		if info, err := os.Stat(target); err != nil || !info.IsDir() {
			continue
		}
		if err := os.Symlink(target, filepath.Join(registries, h.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// configPath is containerd's setting.
func (r Registries) configPath(p Paths) string {
	if len(r.Mirrors) == 0 && r.Config == "" {
		return hostConfigs
	}
	return p.registries()
}
