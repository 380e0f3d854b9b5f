package hollow

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestVariedIsBetweenHalfAndOneAndAHalf(t *testing.T) {
	const usual = 100 * time.Millisecond
	different := map[time.Duration]bool{}
	for _, object := range []string{"a", "b", "c", "d", "e"} {
		got := varied(usual, object)
		if got < usual/2 || got > usual*3/2 || got != varied(usual, object) {
			t.Errorf("delay of %s is %s, then %s", object, got, varied(usual, object))
		}
		different[got] = true
	}
	if len(different) < 2 {
		t.Error("all objects have the same delay")
	}
}

// refusing fails the test for each request that is sent.
type refusing struct{ t *testing.T }

func (r refusing) RoundTrip(request *http.Request) (*http.Response, error) {
	r.t.Errorf("%s %s was sent", request.Method, request.URL)
	return nil, io.EOF
}

func TestEventsAreNotSent(t *testing.T) {
	for path, code := range map[string]int{
		"POST /api/v1/namespaces/a/events":    http.StatusCreated,
		"PATCH /api/v1/namespaces/a/events/b": http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(path, " ")
		request, err := http.NewRequest(method, "https://api.example"+path, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := withoutEvents{refusing{t}}.RoundTrip(request)
		if err != nil || answer.StatusCode != code {
			t.Errorf("%s: got %v and %v, want %d", path, answer, err, code)
		}
	}
}

func TestIsEvents(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/a/events":                  true,
		"/apis/events.k8s.io/v1/namespaces/a/events/b": true,
		"/api/v1/namespaces/events/pods":               false,
		"/api/v1/nodes/events/status":                  false,
		"/api/v1/namespaces/a/pods/events/status":      false,
	} {
		if got := isEvents(path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
