package logs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	retryAfter   = time.Second // a full disk may have space again
	flushAt      = 256 << 10   // bytes of output per write
	pumpLimit    = 4 << 20     // bytes of source between two looks at other requests
	punchEvery   = 16 << 20    // bytes of converted source between two calls that free its blocks
	punchKeeping = 1 << 20     // converted bytes that stay, for `docker logs --tail`
)

// follower converts the log of one container. Only its goroutine uses its fields, except the channels.
type follower struct {
	id       string
	source   string // Docker's file
	target   string
	saved    string // file of the position
	log      *slog.Logger
	in, out  *os.File
	at       position
	skip     int64     // bytes of output that exist already
	after    time.Time // when the position is lost: older lines exist already
	pending  []byte    // output that could not be written yet
	punched  int64
	wake     chan struct{}
	reopen   chan chan error
	finish   chan struct{} // closed when the container has ended
	finished chan struct{} // closed when all is converted, or run was cancelled
}

// run converts until the container has ended and its whole log is written.
func (f *follower) run(ctx context.Context) {
	defer close(f.finished)
	defer f.close()
	finish := f.finish
	ending := false
	for {
		more, err := f.pump()
		if more {
			f.notify() // after what else is to be done
		}
		if ending && f.in == nil && errors.Is(err, fs.ErrNotExist) {
			f.log.Info("container was removed before its whole log was converted", "container", f.id)
			return
		}
		if err == nil && ending && !more {
			if err = f.complete(); err == nil {
				return
			}
		}
		var retry <-chan time.Time
		if err != nil {
			f.log.Error("failed to convert log, will retry", "container", f.id, "err", err)
			retry = time.After(retryAfter)
		}
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-retry:
		case answer := <-f.reopen:
			answer <- f.reopenTarget()
		case <-finish:
			finish, ending = nil, true
		}
	}
}

// pump converts what Docker has written since the last call. There may be more: a container can write without
// end, and its log must still be rotated.
func (f *follower) pump() (more bool, err error) {
	for _, prepare := range []func() error{f.open, f.flush, f.seek} {
		if err := prepare(); err != nil {
			return false, err
		}
	}
	began := f.at.Source
	lines := bufio.NewReaderSize(f.in, 64<<10)
	for !more {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false, fmt.Errorf("read log of Docker: %w", err)
		}
		if err != nil {
			break // what Docker has not finished writing is read again later
		}
		f.add(line)
		if len(f.pending) >= flushAt {
			if err := f.flush(); err != nil {
				return false, err
			}
		}
		more = f.at.Source-began >= pumpLimit
	}
	if err := f.flush(); err != nil || f.at.Source == began {
		return false, err
	}
	f.punch()
	return more, f.at.save(f.saved)
}

// add converts one line. The source's position moves on with the output that is pending for it.
func (f *follower) add(line []byte) {
	before := len(f.pending)
	e, err := parse(bytes.TrimLeft(line, "\x00")) // what was freed reads as zeros
	out := f.pending
	switch {
	case err != nil:
		f.log.Warn("skipped a line of Docker's log", "container", f.id, "offset", f.at.Source, "err", err)
	case e.Time.After(f.after):
		out = e.append(out)
	}
	f.pending = out
	if made := int64(len(out) - before); f.skip > 0 {
		existing := min(f.skip, made)
		f.skip -= existing
		f.pending = append(out[:before], out[int64(before)+existing:]...)
		f.at.Size += existing
	}
	f.at.Source += int64(len(line))
}

// flush writes the pending output. What is left after an error is written by the next call.
func (f *follower) flush() error {
	for len(f.pending) > 0 {
		n, err := f.out.Write(f.pending)
		f.at.Size += int64(n)
		f.pending = f.pending[n:]
		if err != nil {
			return fmt.Errorf("write log: %w", err)
		}
	}
	f.pending = nil
	return nil
}

// seek goes to the position in the source. Converted parts of it may have been freed.
func (f *follower) seek() error {
	at, err := unix.Seek(int(f.in.Fd()), f.at.Source, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EINVAL) { // at the end, or not supported
		at, err = f.in.Seek(f.at.Source, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("seek in log of Docker: %w", err)
	}
	f.at.Source = at
	return nil
}

// complete records that nothing follows.
func (f *follower) complete() error {
	f.at.Done = true
	return f.at.save(f.saved)
}

// open opens the files, if they are not open yet, and finds where to go on.
func (f *follower) open() error {
	if f.in == nil {
		in, err := os.Open(f.source)
		if err != nil {
			return fmt.Errorf("open log of Docker: %w", err)
		}
		f.in = in
	}
	if f.out != nil {
		return nil
	}
	extra, err := f.resume()
	if err != nil {
		return err
	}
	out, inode, size, err := openTarget(f.target)
	if err != nil {
		return err
	}
	f.out, f.skip = out, extra
	// The position now refers to this file. The output that is skipped is added to its size again.
	f.at.Inode, f.at.Size = inode, size-extra
	return f.at.save(f.saved) // before the first write, so that a crash during it is noticed
}

// resume reads the position and returns how much output was written after it was saved.
func (f *follower) resume() (extra int64, err error) {
	at, ok, err := readPosition(f.saved)
	if err != nil {
		f.log.Warn("log position is lost", "container", f.id, "err", err)
	}
	if ok {
		f.at = at
		f.at.Done = false
		extra, found, err := at.written(f.target)
		if err == nil && !found {
			f.log.Info("log file was removed", "container", f.id, "path", f.target)
		}
		return extra, err
	}
	f.after, err = lastTime(f.target)
	return 0, err
}

// openTarget opens a log for appending. A symbolic link is refused: containers may write to the directory.
func openTarget(path string) (file *os.File, inode uint64, size int64, err error) {
	file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o640)
	if err != nil {
		return nil, 0, 0, fmt.Errorf("open log: %w", err)
	}
	var s unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &s); err != nil {
		return nil, 0, 0, errors.Join(fmt.Errorf("open log: %w", err), file.Close())
	}
	return file, s.Ino, s.Size, nil
}

// reopenTarget continues in a new file after the old one was renamed.
func (f *follower) reopenTarget() error {
	if err := f.open(); err != nil {
		return err
	}
	if err := f.flush(); err != nil {
		return err
	}
	out, inode, size, err := openTarget(f.target)
	if err != nil {
		return err
	}
	old := f.out
	f.out, f.at.Inode, f.at.Size = out, inode, size-f.skip
	if err := f.at.save(f.saved); err != nil {
		return errors.Join(err, old.Close())
	}
	return old.Close()
}

// punch frees the blocks of the source that are converted: Docker would keep every log twice otherwise. The
// file keeps its size, so Docker appends as before.
func (f *follower) punch() {
	until := f.at.Source - punchKeeping
	if until-f.punched < punchEvery {
		return
	}
	w, err := os.OpenFile(f.source, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(unix.Fallocate(int(w.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, until), w.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("cannot free converted part of Docker's log", "container", f.id, "err", err)
	}
	f.punched = until // also after an error: it would be repeated for every line
}

func (f *follower) close() {
	for _, file := range []*os.File{f.in, f.out} {
		if file != nil {
			_ = file.Close() // written data is with the kernel already
		}
	}
}
