package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// measurePage leaves the node alone while a page is open that shows its pods, and one of them.
func (n *node) measurePage(ctx context.Context, r *row, idle time.Duration) error {
	if !n.page {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+n.address()+":10250/ui/api/stream?pod=default/pod-0", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer growth")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("open page: %s", answer.Status)
	}
	var sent counter
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&sent, answer.Body) // until stop
	}()
	if err := n.pause(ctx, quiet); err != nil {
		return err
	}
	if err := n.profile("profile", fmt.Sprintf("page-%d.cpu", r.pods)); err != nil {
		return err
	}
	if r.open, err = n.cost(func() error { return n.pause(ctx, idle) }); err != nil {
		return err
	}
	r.open.CPU = time.Duration(float64(r.open.CPU) / idle.Minutes())
	now, err := n.ask("use")
	if err != nil {
		return err
	}
	r.open.Anonymous = now.Anonymous
	stop()
	<-done
	if r.openBytes = sent.n.Load(); r.openBytes == 0 {
		return fmt.Errorf("the page has received nothing")
	}
	return n.profile("profile", "")
}

// counter counts bytes.
type counter struct{ n atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return len(p), nil
}
