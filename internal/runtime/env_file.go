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

// maxEnvFile bounds what is read of a file that another container wrote.
const maxEnvFile = 1 << 20

// fileKey is a value from a file in one of the pod's volumes.
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
		// What is in the file may be secret, and so may be its place on the node.
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

// envFileValue reads one key. A container owns the volume's content, so no symlink may
// lead out of it, and what is opened need not be a file.
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
		return "", errors.Join(err, errors.New("read env file: no regular file"))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxEnvFile))
	if err != nil {
		return "", err
	}
	return parseEnvFile(string(text), key)
}

// parseEnvFile finds a key in lines of the form NAME='value', a subset of what shells
// read: everything between the quotes is literal, newlines included, and comments may
// follow. A blank after the = makes the value empty, as it does in a shell.
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
			return "", fmt.Errorf("parse env file: %q is no NAME='value'", name)
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

// quotedValue takes 'value' and a comment off the front of text, up to the line's end.
func quotedValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, "'") {
		return "", "", errors.New("not enclosed in single quotes")
	}
	value, rest, closed := strings.Cut(text[1:], "'")
	if !closed {
		return "", "", errors.New("unclosed single quote")
	}
	behind, rest, _ := strings.Cut(rest, "\n")
	if behind = strings.Trim(behind, " \t"); behind != "" && behind[0] != '#' {
		return "", "", errors.New("unexpected content after closing quote")
	}
	return value, rest, nil
}
