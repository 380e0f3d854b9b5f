package certificate

import (
	"errors"
	"time"
)

// trouble decides which failures are worth a person's attention. An API server that is away
// for a while is not: everything else says so already.
type trouble struct {
	since time.Time // of the first failure in a row
	told  time.Time
}

// tell notes a failure and reports whether to tell of it.
func (t *trouble) tell(now time.Time, err error) bool {
	if t.since.IsZero() {
		t.since = now
	}
	refused := errors.As(err, new(*spentError))
	if !refused && now.Sub(t.since) < troubleAfter {
		return false
	}
	if !t.told.IsZero() && now.Sub(t.told) < troubleAfter {
		return false
	}
	t.told = now
	return true
}

// over notes a success. Who was told lately is not told again at once even so.
func (t *trouble) over() { t.since = time.Time{} }
