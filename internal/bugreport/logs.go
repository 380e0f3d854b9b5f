package bugreport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"swiftlet/internal/boundedio"
)

// maxLog is what is kept of the end of each log.
const maxLog = 2 << 20

// readLogs adds the ends of logs: the files of `swiftlet up`, or what the kubelet reads of its own log.
func (c *collector) readLogs(ctx context.Context) {
	if c.cfg.Root == "" {
		text, err := c.get(ctx, "/logs/", "query=kubelet&tailLines=10000")
		if err != nil {
			c.archive.fail("log/kubelet.log", "not read: "+c.redact.text(err.Error())+
				"; with enableSystemLogQuery the kubelet serves it, otherwise attach the output of `journalctl -u kubelet`")
			return
		}
		c.add("log/kubelet.log", string(text), end, "")
		return
	}
	dir := filepath.Join(c.cfg.Root, "log")
	files, err := os.ReadDir(dir)
	if err != nil {
		c.fail("log", err)
		return
	}
	if !slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() == "swiftlet.log" }) {
		c.archive.fail("log/swiftlet.log", "does not exist: without a terminal, and without -d, \"swiftlet up\" logs to standard error")
	}
	for _, file := range files {
		if !file.Type().IsRegular() {
			continue
		}
		c.progress(file.Name())
		name := "log/" + file.Name()
		text, note, err := tail(filepath.Join(dir, file.Name()), maxLog)
		if err != nil {
			c.fail(name, err)
			continue
		}
		c.add(name, string(text), end, note)
	}
}

// tail reads the last lines of a regular file.
func tail(path string, limit int64) (text []byte, note string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", &os.PathError{Op: "read", Path: path, Err: boundedio.ErrNotRegular}
	}
	from := max(0, info.Size()-limit)
	if text, err = io.ReadAll(io.NewSectionReader(f, from, limit)); err != nil {
		return nil, "", err
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
		note = fmt.Sprintf("the end of %d bytes", info.Size())
	}
	return text, note, nil
}
