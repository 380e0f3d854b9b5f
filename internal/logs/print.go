package logs

import (
	"bufio"
	"bytes"
	"errors"
)

// stampFormat has a fixed width, so that lines stay aligned.
const stampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// errLimitReached ends the output after Options.Limit bytes.
var errLimitReached = errors.New("limit reached")

// printer writes entries as the options say.
type printer struct {
	opts      Options
	w         *bufio.Writer
	written   int64
	lineStart bool // the entry printed last ended a line
}

func (p *printer) print(e Entry) error {
	if e.Time.Before(p.opts.Since) || p.opts.Stream != "" && e.Stream != p.opts.Stream {
		return nil
	}
	if p.opts.Timestamps && p.lineStart {
		if err := p.write(append(e.Time.AppendFormat(nil, stampFormat), ' ')); err != nil {
			return err
		}
	}
	p.lineStart = len(e.Content) == 0 || bytes.HasSuffix(e.Content, []byte{'\n'})
	return p.write(e.Content)
}

// write writes up to the limit. It returns errLimitReached once everything up to it is written.
func (p *printer) write(data []byte) error {
	done := false
	if limit := p.opts.Limit; limit != nil && p.written+int64(len(data)) >= *limit {
		data, done = data[:*limit-p.written], true
	}
	p.written += int64(len(data))
	if _, err := p.w.Write(data); err != nil {
		return err
	}
	if done {
		return errors.Join(errLimitReached, p.flush())
	}
	return nil
}

func (p *printer) flush() error { return p.w.Flush() }
