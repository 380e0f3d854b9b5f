// Package statefile has the common parts of the CPU and memory managers' state files. They have
// the reference kubelet's format: the state as a string with a checksum, and the state in the
// format of older releases with a checksum of its own.
package statefile

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"strings"

	"k8s.io/utils/dump"
)

// ErrCorrupt is the error of a truncated, modified or foreign file.
var ErrCorrupt = errors.New("the state file cannot be trusted")

// Sum is a checksum in these files.
type Sum uint64

// Checksum returns the reference kubelet's checksum of a value: a hash of its dump, which contains
// the names of types. typeNames lists pairs of a type's name here and in the reference kubelet.
func Checksum(v any, typeNames ...string) Sum {
	typeNames = append(typeNames, "statefile.Sum", "checksum.Checksum")
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.NewReplacer(typeNames...).Replace(dump.ForHash(v))))
	return Sum(h.Sum32())
}

// SetAside renames a file by appending the suffix, and replaces an earlier file of that name. A
// missing file is no error.
func SetAside(path, suffix string) (aside string, err error) {
	aside = path + suffix
	if err := os.Rename(path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("move state file aside: %w", err)
	}
	return aside, nil
}
