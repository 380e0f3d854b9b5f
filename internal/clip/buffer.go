package clip

// Buffer is a writer that keeps the first bytes up to its limit and counts the rest. Writes never fail, so
// that a program that writes to it is not killed for its output.
type Buffer struct {
	limit int
	kept  []byte
	size  int64
}

// NewBuffer returns an empty buffer.
func NewBuffer(limit int) *Buffer { return &Buffer{limit: limit} }

func (b *Buffer) Write(p []byte) (int, error) {
	b.size += int64(len(p))
	if room := b.limit - len(b.kept); room > 0 {
		b.kept = append(b.kept, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// Bytes returns what was kept.
func (b *Buffer) Bytes() []byte { return b.kept }

// Full reports whether something was dropped.
func (b *Buffer) Full() bool { return b.size > int64(b.limit) }
