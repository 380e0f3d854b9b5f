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

// debian is a program of this machine under its own name in the image, with the libraries
// that it is linked with.
func debian(ctx context.Context, names ...string) ([]images.Entry, error) {
	var entries []images.Entry
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("find %s for an image (run hack/install-deps.sh): %w", name, err)
		}
		more, err := linked(ctx, path, "usr/bin/"+name)
		if err != nil {
			return nil, err
		}
		entries = append(entries, more...)
	}
	return entries, nil
}

// linked is the program at path, placed at target, after its libraries.
func linked(ctx context.Context, path, target string) ([]images.Entry, error) {
	said, err := exec.CommandContext(ctx, "ldd", path).CombinedOutput()
	if err != nil && !strings.Contains(string(said), "not a dynamic executable") {
		return nil, fmt.Errorf("list libraries of %s: %w: %s", path, err, said)
	}
	if strings.Contains(string(said), "not found") {
		return nil, fmt.Errorf("list libraries of %s: one is missing: %s", path, said)
	}
	var entries []images.Entry
	for _, match := range library.FindAllStringSubmatch(string(said), -1) {
		entry, err := file(match[1], strings.TrimPrefix(match[1], "/"), 0o755)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	program, err := file(path, target, 0o755)
	return append(entries, program), err
}

// file is a file of this machine, links followed.
func file(path, target string, mode int64) (images.Entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return images.Entry{}, fmt.Errorf("read %s for an image: %w", filepath.Base(path), err)
	}
	return images.Entry{Name: target, Mode: mode, Data: data}, nil
}
