// Package hostpath mounts files and directories of the node. It creates only what the volume's type
// requires, and never removes anything.
package hostpath

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/volume/plugin"
	"swiftlet/internal/why"
)

// Name is the kind's qualified name.
const Name = "kubernetes.io/host-path"

// Plugin mounts hostPath volumes.
type Plugin struct{}

func (Plugin) Name() string { return Name }

func (Plugin) Handles(s plugin.Spec) bool { return source(s) != nil }

func source(s plugin.Spec) *v1.HostPathVolumeSource {
	return plugin.Source(s,
		func(v *v1.Volume) *v1.HostPathVolumeSource { return v.HostPath },
		func(pv *v1.PersistentVolume) *v1.HostPathVolumeSource { return pv.Spec.HostPath })
}

func (Plugin) SetUp(_ context.Context, r plugin.Request) (plugin.Result, error) {
	src := source(r.Spec)
	if len(r.MountOptions()) > 0 {
		return plugin.Result{}, errors.New("mount options are not supported for this volume type")
	}
	if slices.Contains(strings.Split(src.Path, "/"), "..") {
		return plugin.Result{}, fmt.Errorf("invalid HostPath `%s`: must not contain '..'", src.Path)
	}
	if src.Type != nil && *src.Type != v1.HostPathUnset {
		if err := check(src.Path, *src.Type); err != nil {
			return plugin.Result{}, why.Because(why.HostPathMismatch, src.Path, err)
		}
	}
	return plugin.Result{HostPath: src.Path, ReadOnly: r.ClaimReadOnly}, nil
}

// types maps each type to the required type of file and its name in messages.
var types = map[v1.HostPathType]struct {
	found v1.HostPathType
	word  string
	make  func(path string) error
}{
	v1.HostPathDirectory:         {v1.HostPathDirectory, "directory", nil},
	v1.HostPathDirectoryOrCreate: {v1.HostPathDirectory, "directory", makeDir},
	v1.HostPathFile:              {v1.HostPathFile, "file", nil},
	v1.HostPathFileOrCreate:      {v1.HostPathFile, "file", makeFile},
	v1.HostPathSocket:            {v1.HostPathSocket, "socket file", nil},
	v1.HostPathCharDev:           {v1.HostPathCharDev, "character device", nil},
	v1.HostPathBlockDev:          {v1.HostPathBlockDev, "block device", nil},
}

func check(path string, want v1.HostPathType) error {
	w, ok := types[want]
	if !ok {
		return fmt.Errorf("%s is an invalid volume type", want)
	}
	got, err := typeOf(path)
	if w.make != nil && errors.Is(err, fs.ErrNotExist) {
		return w.make(path)
	}
	if err != nil {
		return fmt.Errorf("hostPath type check failed, %s is not a %s, unable to determine its type: %w", path, w.word, err)
	}
	if got != w.found {
		return fmt.Errorf("hostPath type check failed: %s is not a %s, it's a %s", path, w.word, got)
	}
	return nil
}

// missingError has the text of the reference kubelet and is fs.ErrNotExist.
type missingError struct{ path string }

func (e missingError) Error() string { return fmt.Sprintf("path %q does not exist", e.path) }
func (missingError) Unwrap() error   { return fs.ErrNotExist }

func typeOf(path string) (v1.HostPathType, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", missingError{path}
	}
	if err != nil {
		return "", err
	}
	switch mode := info.Mode(); {
	case mode.IsDir():
		return v1.HostPathDirectory, nil
	case mode.IsRegular():
		return v1.HostPathFile, nil
	case mode&fs.ModeSocket != 0:
		return v1.HostPathSocket, nil
	case mode&fs.ModeCharDevice != 0:
		return v1.HostPathCharDev, nil
	case mode&fs.ModeDevice != 0:
		return v1.HostPathBlockDev, nil
	}
	return "", errors.New("only recognise file, directory, socket, block device and character device")
}

func makeDir(path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("create hostPath directory: %w", err)
	}
	return nil
}

// makeFile creates an empty file but no parent directories, as the type is documented.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return fmt.Errorf("create hostPath file: %w", err)
	}
	return f.Close()
}
