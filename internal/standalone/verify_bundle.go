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
	problems := make([]error, len(bundled))
	var group errgroup.Group
	for i, name := range bundled {
		group.Go(func() error {
			problems[i] = checkHash(cfg.Paths.program(name), cfg.BundleHashes[name])
			return nil
		})
	}
	_ = group.Wait() // problems has the errors
	return errors.Join(problems...)
}

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
