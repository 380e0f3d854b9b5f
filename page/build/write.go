package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// suffix is that of compressed files.
const suffix = ".gz"

// write replaces what is in the directory by the compressed files. It returns their size.
func write(files map[string][]byte, dir string) (size int, err error) {
	if err := os.RemoveAll(dir); err != nil {
		return 0, fmt.Errorf("write: %w", err)
	}
	for name, content := range files {
		compressed, err := compress(content)
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", name, err)
		}
		size += len(compressed)
		path := filepath.Join(dir, name) + suffix
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
		if err := os.WriteFile(path, compressed, 0o644); err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
	}
	return size, nil
}

func compress(content []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// read returns what write has written, uncompressed, and its compressed size.
func read(dir string) (files map[string][]byte, size int, err error) {
	files = map[string][]byte{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		compressed, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		size += len(compressed)
		r, err := gzip.NewReader(bytes.NewReader(compressed))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[strings.TrimSuffix(filepath.ToSlash(name), suffix)], err = io.ReadAll(r)
		return err
	})
	return files, size, err
}
