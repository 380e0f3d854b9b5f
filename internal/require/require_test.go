package require

import (
	"io"
	"testing"
)

type zero struct{}

func (zero) Read([]byte) (int, error) { return 0, io.EOF }

func TestSet(t *testing.T) {
	var reader io.Reader
	var call func()
	var pointer *int
	err := Set("new thing", map[string]any{
		"Reader": reader, "Call": call, "Pointer": pointer, "Dir": "",
		"Value": io.Reader(zero{}), "Name": "n", "Function": func() {}, "Count": 0,
	})
	if want := "new thing: missing Call, Dir, Pointer, Reader"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := Set("new thing", map[string]any{"Value": zero{}}); err != nil {
		t.Errorf("got %v, want none", err)
	}
}
