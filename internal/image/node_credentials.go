package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// NodeKeyring reads the credentials that every pod of the node may use from the first valid
// docker configuration: config.json in the kubelet's root directory or in docker's default
// locations, else the older .dockercfg. A node without one has an empty keyring. home may be
// empty. The error lists the files that were skipped as invalid; the keyring is usable even so.
func NodeKeyring(rootDir, home string) (*Keyring, error) {
	files := []string{filepath.Join(rootDir, "config.json"), "/.docker/config.json"}
	older := []string{filepath.Join(rootDir, ".dockercfg"), "/.dockercfg"}
	if home != "" {
		files = []string{files[0], filepath.Join(home, ".docker/config.json"), files[1]}
		older = []string{older[0], filepath.Join(home, ".dockercfg"), older[1]}
	}
	k := &Keyring{}
	var invalid []error
	for _, try := range []struct {
		files []string
		parse func([]byte) (map[string]login, error)
	}{{files, parseConfigJSON}, {older, parseConfig}} {
		for _, file := range try.files {
			data, err := os.ReadFile(file)
			if os.IsNotExist(err) {
				continue
			}
			var logins map[string]login
			if err == nil {
				logins, err = try.parse(data)
			}
			if err != nil {
				invalid = append(invalid, fmt.Errorf("read node credentials %s: %w", file, err))
				continue
			}
			k.add(logins)
			return k, errors.Join(invalid...)
		}
	}
	return k, errors.Join(invalid...)
}
