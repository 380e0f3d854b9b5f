package clip

import "unicode/utf8"

// Limits in bytes.
const (
	// Event is the API's limit of an event's note.
	Event = 1024
	// Message limits a message in a status, and the text of an error of another program. It is the API's
	// limit of a termination message.
	Message = 4096
	// Output limits the output of a command or a probe. It is the reference kubelet's limit for probes.
	Output = 10 << 10
	// Name limits a name or a path in a log record.
	Name = 256
)

// truncated is at the end of a text that was cut.
const truncated = "… (truncated)"

// Text returns s if it has at most limit bytes, else its beginning with a note, together at most limit bytes. It cuts between characters. The result shares no memory with s, which may be large.
func Text[T string | []byte](s T, limit int) string {
	if len(s) <= limit {
		return string(s)
	}
	note := truncated
	if len(note) > limit {
		note = ""
	}
	end := limit - len(note)
	for back := 1; back < utf8.UTFMax && end-back >= 0; back++ {
		if r := s[end-back]; utf8.RuneStart(r) {
			if !utf8.FullRune([]byte(s[end-back : end])) {
				end -= back
			}
			break
		}
	}
	return string(append([]byte(s[:end]), note...))
}

// Error returns err with its text limited, or err itself if the text is short enough. It wraps err.
func Error(err error, limit int) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if len(text) <= limit {
		return err
	}
	return &clipped{text: Text(text, limit), err: err}
}

type clipped struct {
	text string
	err  error
}

func (e *clipped) Error() string { return e.text }
func (e *clipped) Unwrap() error { return e.err }
