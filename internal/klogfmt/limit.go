package klogfmt

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/lru"
)

const (
	// burst is the number of records of one cause that are written at once. Then follows one every
	// refill.
	burst  = 200
	refill = time.Second
	// maxCauses limits the memory for causes. One that was not heard of for long starts again.
	maxCauses = 1024
)

// Limiter limits the records of each cause, so that a client or a pod cannot fill the disk with logs. A
// cause is a line of the source code and the pod that the record is about. The next record of a cause
// after a pause has the number of records that were not written, as suppressed.
//
// Records of a verbosity above 2 are not limited: they are for debugging.
type Limiter struct {
	mu     sync.Mutex
	causes *lru.Cache
}

// NewLimiter returns a limiter.
func NewLimiter() *Limiter { return &Limiter{causes: lru.New(maxCauses)} }

type cause struct {
	source any // the program counter, or the file and line
	pods   string
}

// budget is what a cause may write.
type budget struct {
	left       time.Duration // in units of refill
	at         time.Time
	suppressed int
}

// allow reports whether a record is written, and how many before it were not.
func (l *Limiter) allow(c cause, now time.Time) (ok bool, suppressed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, _ := l.causes.Get(c)
	b, _ := known.(*budget)
	if b == nil {
		b = &budget{left: burst * refill, at: now}
		l.causes.Add(c, b)
	}
	b.left = min(b.left+max(now.Sub(b.at), 0), burst*refill)
	b.at = now
	if b.left < refill {
		b.suppressed++
		return false, 0
	}
	b.left -= refill
	suppressed, b.suppressed = b.suppressed, 0
	return true, suppressed
}

// limit reports whether to write a record. It may add an attribute.
func (h *Handler) limit(r *slog.Record) bool {
	if h.cfg.Limiter == nil || r.Level < V2 {
		return true
	}
	ok, suppressed := h.cfg.Limiter.allow(cause{source: r.PC, pods: h.podsOf(r)}, r.Time)
	if suppressed > 0 {
		*r = r.Clone()
		r.AddAttrs(slog.Int("suppressed", suppressed))
	}
	return ok
}

// limitLine is limit for a line of klog.
func (h *Handler) limitLine(line []byte) bool {
	if h.cfg.Limiter == nil {
		return true
	}
	header, _, _ := bytes.Cut(line, []byte("]"))
	source := header[bytes.LastIndexByte(header, ' ')+1:]
	ok, _ := h.cfg.Limiter.allow(cause{source: string(source)}, time.Now())
	return ok
}

// podsOf returns the pods that a record is about.
func (h *Handler) podsOf(r *slog.Record) (pods string) {
	add := func(a slog.Attr) {
		switch a.Key {
		case "pod", "pods", "podUID":
			if v, ok := a.Value.Any().(fmt.Stringer); ok {
				pods += stringOf(v.String)
			} else {
				pods += a.Value.String()
			}
		}
	}
	h.eachBefore(add)
	h.eachOf(r, add)
	return pods
}
