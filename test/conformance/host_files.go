package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"swiftlet/test/images"
)

// library finds a path in ldd's output: "name => /path (0x…)" or "/path (0x…)".
var library = regexp.MustCompile(`(?m)(?:=> |^\s*)(/\S+) \(0x`)

// hostPrograms are programs of the host with their libraries, for usr/bin of an image.
func hostPrograms(ctx context.Context, names ...string) ([]images.Entry, error) {
	var entries []images.Entry
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("find %s for an image (run hack/install-deps.sh): %w", name, err)
		}
		more, err := withLibraries(ctx, path, "usr/bin/"+name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// withLibraries is the program at path, for target in an image, preceded by its libraries.
func withLibraries(ctx context.Context, path, target string) ([]images.Entry, error) {
	out, err := exec.CommandContext(ctx, "ldd", path).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
		return nil, fmt.Errorf("list libraries of %s: %w: %s", path, err, out)
	}
	if strings.Contains(string(out), "not found") {
		return nil, fmt.Errorf("list libraries of %s: one is missing: %s", path, out)
	}
	var entries []images.Entry
	for _, match := range library.FindAllStringSubmatch(string(out), -1) {
		entry, err := file(match[1], strings.TrimPrefix(match[1], "/"), 0o755)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	program, err := file(path, target, 0o755)
	return append(entries, program), err
}

// file is a file of the host, for target in an image. It follows links.
func file(path, target string, mode int64) (images.Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return images.Entry{}, fmt.Errorf("read %s for an image: %w", filepath.Base(path), err)
	}
	return images.Entry{Name: target, Mode: mode, Data: data}, nil
}
