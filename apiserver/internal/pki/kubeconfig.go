package pki

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"swiftlet/internal/boundedio"
)

// access says who may read a file.
type access struct {
	mode  os.FileMode
	group int // -1 for the group of the process
}

// private files are readable by their owner alone.
var private = access{mode: 0o600, group: -1}

// WriteKubeconfig writes a kubeconfig with the certificate of that name. If group is not empty, its members
// may read the file.
func WriteKubeconfig(file, server, dir, name, group string) error {
	who, err := readableBy(group)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	content := func(suffix string) []byte {
		data, readErr := boundedio.ReadFile(filepath.Join(dir, suffix), boundedio.Small)
		err = errors.Join(err, readErr)
		return data
	}
	config := api.Config{
		Clusters:       map[string]*api.Cluster{"swiftlet": {Server: server, CertificateAuthorityData: content("ca.crt")}},
		AuthInfos:      map[string]*api.AuthInfo{name: {ClientCertificateData: content(name + ".crt"), ClientKeyData: content(name + ".key")}},
		Contexts:       map[string]*api.Context{"swiftlet": {Cluster: "swiftlet", AuthInfo: name}},
		CurrentContext: "swiftlet",
	}
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	encoded, err := clientcmd.Write(config)
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return replaceFile(file, encoded, who)
}

func readableBy(group string) (access, error) {
	if group == "" {
		return private, nil
	}
	found, err := user.LookupGroup(group)
	if err != nil {
		return access{}, err
	}
	id, err := strconv.Atoi(found.Gid)
	return access{mode: 0o640, group: id}, err
}

// replaceFile replaces a file in one step, and returns when it is on disk. No one else can read it at any time.
func replaceFile(file string, content []byte, who access) error {
	temporary, err := os.CreateTemp(filepath.Dir(file), ".new-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(temporary.Name()) // fails once it is renamed
	_, err = temporary.Write(content)
	err = errors.Join(err, temporary.Chown(-1, who.group), temporary.Chmod(who.mode), temporary.Sync(), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err == nil {
		err = syncDirectory(filepath.Dir(file))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
