// Package statefile has what the state files of CPUs and memory have in common. Their form
// is the reference kubelet's: the state as a string with a checksum, and beside it the
// state in the form of older releases, with another.
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

// ErrBad: the file is torn, changed by hand, or something else altogether.
var ErrBad = errors.New("the state file cannot be trusted")

// Sum is a checksum as these files have it.
type Sum uint64

// Checksum is the sum over a value as the reference prints it. The names of types are part
// of what is printed: as lists pairs of a name here and the name there.
func Checksum(v any, as ...string) Sum {
	as = append(as, "statefile.Sum", "checksum.Checksum")
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.NewReplacer(as...).Replace(dump.ForHash(v))))
	return Sum(h.Sum32())
}

// SetAside moves a file out of the way, under its own name with the suffix, over what an
// earlier one left there. It is no error if there is no file.
func SetAside(path, suffix string) (moved string, err error) {
	moved = path + suffix
	if err := os.Rename(path, moved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set the state file aside: %w", err)
	}
	return moved, nil
}
