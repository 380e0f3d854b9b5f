package images

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// library finds a path in ldd's output: "name => /path (0x…)" or "/path (0x…)".
var library = regexp.MustCompile(`(?m)(?:=> |^\s*)(/\S+) \(0x`)

// HostPrograms are programs of the host with their libraries, for usr/bin of an image.
func HostPrograms(ctx context.Context, names ...string) ([]Entry, error) {
	var entries []Entry
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("find %s for an image (run hack/install-deps.sh): %w", name, err)
		}
		more, err := WithLibraries(ctx, path, "usr/bin/"+name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// WithLibraries is the program at path, for target in an image, preceded by its libraries.
func WithLibraries(ctx context.Context, path, target string) ([]Entry, error) {
	out, err := exec.CommandContext(ctx, "ldd", path).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
		return nil, fmt.Errorf("list libraries of %s: %w: %s", path, err, out)
	}
	if strings.Contains(string(out), "not found") {
		return nil, fmt.Errorf("list libraries of %s: one is missing: %s", path, out)
	}
	var entries []Entry
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		entry, err := File(match[1], strings.TrimPrefix(match[1], "/"), 0o755)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	program, err := File(path, target, 0o755)
	return append(entries, program), err
}

// File is a file of the host, for target in an image. It follows links.
func File(path, target string, mode int64) (Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Entry{}, fmt.Errorf("read %s for an image: %w", filepath.Base(path), err)
	}
	return Entry{Name: target, Mode: mode, Data: data}, nil
}
