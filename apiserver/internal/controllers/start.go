package controllers

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"swiftlet/apiserver/internal/demand"
	"swiftlet/internal/backoff"
)

// startRetry is how soon the start of a controller is tried again: what it needs of the kernel or of the API may
// come later.
var startRetry = backoff.Backoff{First: time.Second, Longest: time.Minute}

// starter starts controllers.
type starter struct {
	needed  <-chan demand.Controller // gives each once
	create  func(context.Context, demand.Controller) (runner, error)
	created func() // is called before a controller runs
}

// run starts controllers until ctx is done, and returns when they have ended. A controller whose start fails is tried
// again, and does not affect others.
func (s starter) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	again := make(chan demand.Controller)
	retries := map[demand.Controller]*backoff.Backoff{}
	for {
		var name demand.Controller
		select {
		case <-ctx.Done():
			return
		case name = <-s.needed:
			retry := startRetry
			retries[name] = &retry
		case name = <-again:
		}
		log := klog.FromContext(ctx)
		run, err := s.create(ctx, name)
		if err != nil {
			delay := retries[name].Next()
			log.Error(err, "controllers: start failed", "controller", name, "retry", delay)
			running.Go(func() { sendAfter(ctx, delay, again, name) })
			continue
		}
		log.Info("controllers: started", "controller", name)
		s.created()
		running.Go(func() { run(ctx, workers) })
	}
}

// sendAfter sends a name after a delay, unless ctx is done before.
func sendAfter(ctx context.Context, delay time.Duration, to chan<- demand.Controller, name demand.Controller) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return
	case <-timer.C:
	}
	select {
	case <-ctx.Done():
	case to <- name:
	}
}
