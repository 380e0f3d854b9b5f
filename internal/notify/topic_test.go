package notify

import (
	"slices"
	"testing"
)

func TestTopicCallsSubscribersInOrder(t *testing.T) {
	var topic Topic[string]
	topic.Publish("before any subscriber")
	var got []string
	topic.Subscribe(func(s string) { got = append(got, "first "+s) })
	topic.Subscribe(func(s string) {
		got = append(got, "second "+s)
		topic.Subscribe(func(s string) { got = append(got, "third "+s) })
	})
	topic.Publish("a")
	topic.Publish("b")
	want := []string{"first a", "second a", "first b", "second b", "third b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
