package runtime

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	v1 "k8s.io/api/core/v1"
)

// maxEnvFile limits how much is read of a file that another container wrote.
const maxEnvFile = 1 << 20

// fileKey returns a value from a file in one of the pod's volumes.
func (in EnvInput) fileKey(of *v1.FileKeySelector) (string, bool, error) {
	dir, ok := "", false
	if in.VolumePath != nil {
		dir, ok = in.VolumePath(of.VolumeName)
	}
	if !ok {
		return "", false, fmt.Errorf("cannot find the volume %q referenced by FileKeyRef", of.VolumeName)
	}
	value, err := envFileValue(dir, of.Path, of.Key)
	if err != nil {
		// The file's content may be secret, and its path on the node is not for the user.
		return "", false, &shownError{message: "couldn't parse env file", err: err}
	}
	if value == "" {
		if isTrue(of.Optional) {
			return "", false, nil
		}
		return "", false, fmt.Errorf("environment variable key %q not found in file %q", of.Key, of.Path)
	}
	return value, true, nil
}

// envFileValue reads one key. Containers write the volume, so it follows no symlink out of the
// volume and reads regular files only.
func envFileValue(dir, path, key string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, errors.New("read env file: not a regular file"))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile))
	if err != nil {
		return "", err
	}
	return parseEnvFile(string(text), key)
}

// parseEnvFile finds a key in lines of the form NAME='value', a subset of shell syntax:
// everything between the quotes is literal, newlines included, and a comment may follow. With
// a blank after the = the value is empty, as in a shell.
func parseEnvFile(text, key string) (string, error) {
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		trimmed := strings.TrimLeft(line, " \t")
		if trimmed == "" || trimmed[0] == '#' {
			text = rest
			continue
		}
		name, value, ok := strings.Cut(trimmed, "=")
		if !ok || name == "" || strings.TrimRight(name, " \t") != name {
			return "", fmt.Errorf("parse env file: %q is not NAME='value'", name)
		}
		if strings.HasPrefix(value, " ") || strings.HasPrefix(value, "\t") {
			if name == key {
				return "", nil
			}
			text = rest
			continue
		}
		quoted, after, err := quotedValue(text[strings.Index(text, "=")+1:])
		if err != nil {
			return "", fmt.Errorf("parse env file: value of %s: %w", name, err)
		}
		if name == key {
			return quoted, nil
		}
		text = after
	}
	return "", nil
}

// quotedValue cuts 'value' and a comment from the front of text, up to the end of the line.
func quotedValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, "'") {
		return "", "", errors.New("not enclosed in single quotes")
	}
	value, rest, closed := strings.Cut(text[1:], "'")
	if !closed {
		return "", "", errors.New("unclosed single quote")
	}
	trailing, rest, _ := strings.Cut(rest, "\n")
	if trailing = strings.Trim(trailing, " \t"); trailing != "" && trailing[0] != '#' {
		return "", "", errors.New("unexpected content after closing quote")
	}
	return value, rest, nil
}
