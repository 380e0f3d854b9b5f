package standalone

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
)

// bundled are the programs of the bundle. All of them run as root.
var bundled = []string{"containerd", "containerd-shim-runc-v2", "runc", "ctr", "cni/bridge", "cni/host-local", "cni/loopback", "cni/portmap"}

// bundledFile is a program and its name in the list of hashes.
type bundledFile struct{ name, path string }

// bundledFiles are all programs that run as root: those of the bundle, and those of the API.
func bundledFiles(cfg Config) []bundledFile {
	var files []bundledFile
	for _, name := range bundled {
		files = append(files, bundledFile{name, cfg.Paths.program(name)})
	}
	if cfg.API != nil {
		for _, name := range apiPrograms {
			files = append(files, bundledFile{"api/" + name, cfg.API.program(name)})
		}
	}
	return files
}

// BundleHashes are the SHA-256 sums of the bundled programs, in hexadecimal, by name.
type BundleHashes map[string]string

// ParseBundleHashes reads the list that the build links into the executable: name=sum, separated by
// commas. An empty list has no hashes.
func ParseBundleHashes(list string) (BundleHashes, error) {
	hashes := BundleHashes{}
	if list == "" {
		return hashes, nil
	}
	for item := range strings.SplitSeq(list, ",") {
		name, sum, _ := strings.Cut(item, "=")
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != sha256.Size {
			return nil, fmt.Errorf("read hashes of the bundle: %q is not name=sha256", item)
		}
		hashes[name] = strings.ToLower(sum)
	}
	return hashes, nil
}

// checkBundle compares each program with the hash that was taken when this executable was built.
func checkBundle(cfg Config) error {
	if cfg.AnyBundle {
		return nil
	}
	if len(cfg.BundleHashes) == 0 {
		return errors.New("this executable was built without the hashes of its bundle; build it with `make build`, or run any bundle with --verify-bundle=false")
	}
	files := bundledFiles(cfg)
	problems := make([]error, len(files))
	var group errgroup.Group
	for i, f := range files {
		group.Go(func() error {
			problems[i] = checkHash(f.path, cfg.BundleHashes[f.name])
			return nil
		})
	}
	_ = group.Wait() // problems has the errors
	return errors.Join(problems...)
}

// Check compares a program with the hash of that name.
func (h BundleHashes) Check(name, file string) error { return checkHash(file, h[name]) }

func checkHash(file, want string) error {
	got, err := hashFile(file)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("%s is not the program that this executable was built with: its SHA-256 is %s, want %s; build both with `make build`, or run any bundle with --verify-bundle=false", file, got, want)
	}
	return nil
}

func hashFile(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
