package image

import (
	"fmt"
	"os"
	"path/filepath"
)

// NodeKeyring reads the credentials that every pod of the node may use from the first
// docker configuration found: config.json in the kubelet's root directory, or where the
// docker command keeps it, else the older .dockercfg. A node without one has an empty
// keyring. home may be empty.
func NodeKeyring(rootDir, home string) (*Keyring, error) {
	files := []string{filepath.Join(rootDir, "config.json"), "/.docker/config.json"}
	older := []string{filepath.Join(rootDir, ".dockercfg"), "/.dockercfg"}
	if home != "" {
		files = []string{files[0], filepath.Join(home, ".docker/config.json"), files[1]}
		older = []string{older[0], filepath.Join(home, ".dockercfg"), older[1]}
	}
	k := &Keyring{}
	for _, try := range []struct {
		files []string
		parse func([]byte) (map[string]login, error)
	}{{files, parseConfigJSON}, {older, parseConfig}} {
		for _, file := range try.files {
			data, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read node credentials: %w", err)
			}
			logins, err := try.parse(data)
			if err != nil {
				return nil, fmt.Errorf("read node credentials %s: %w", file, err)
			}
			k.add(logins)
			return k, nil
		}
	}
	return k, nil
}
