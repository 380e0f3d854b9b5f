package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// All watches go through one stream. They come and go here while others get events.
func TestWatchesGetEventsUnderLoad(t *testing.T) {
	member, err := Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := member.Close(); err != nil {
			t.Error(err)
		}
	})
	client := member.Client()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var events sync.WaitGroup
	for range 50 {
		watch := client.Watch(ctx, "load/", clientv3.WithPrefix())
		events.Go(func() {
			for range watch {
			}
		})
	}
	var load sync.WaitGroup
	for w := range 8 {
		load.Go(func() {
			for n := range 200 {
				if _, err := client.Put(ctx, fmt.Sprintf("load/%d/%d", w, n%10), "x"); err != nil {
					t.Error(err)
					return
				}
			}
		})
		load.Go(func() {
			for range 20 {
				few, end := context.WithCancel(ctx)
				for range 20 {
					client.Watch(few, "load/", clientv3.WithPrefix())
				}
				end()
			}
		})
	}
	load.Wait()
	watch := client.Watch(ctx, "last")
	if _, err := client.Put(ctx, "last", "x"); err != nil {
		t.Fatal(err)
	}
	for {
		response, open := <-watch
		if !open {
			t.Fatal("a watch gets no event within a minute")
		}
		if len(response.Events) > 0 {
			break
		}
	}
	stop()
	events.Wait()
}
