package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestNoAcknowledgedWriteIsLost kills the program while clients write, and starts it again. SWIFTLET_KILLS is
// the number of kills.
func TestNoAcknowledgedWriteIsLost(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("SWIFTLET_KILLS"))
	if err != nil {
		kills = 3
		if testing.Short() {
			kills = 1
		}
	}
	i := start(t)
	var acknowledged []string
	for n := range kills {
		written := make(chan string, 10_000)
		stop := make(chan struct{})
		var writers sync.WaitGroup
		for w := range 4 {
			writers.Go(func() {
				for k := 0; ; k++ {
					select {
					case <-stop:
						return
					default:
					}
					name := fmt.Sprintf("write-%d-%d-%d", n, w, k)
					if out, err := i.run("kubectl create configmap "+name, ""); err == nil && strings.Contains(out, "created") {
						written <- name
					}
				}
			})
		}
		time.Sleep(time.Duration(1000+100*n) * time.Millisecond) // the kill is to come at any moment
		i.kill()
		close(stop)
		writers.Wait()
		close(written)
		for name := range written {
			acknowledged = append(acknowledged, "configmap/"+name)
		}
		i.launch()
		stored := strings.Fields(i.must("kubectl get configmaps -o name", ""))
		for _, name := range acknowledged {
			if !slices.Contains(stored, name) {
				t.Errorf("%s is lost after kill %d", name, n+1)
			}
		}
	}
	if len(acknowledged) == 0 {
		t.Error("no write was acknowledged")
	}
}
