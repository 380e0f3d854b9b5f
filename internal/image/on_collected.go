package image

import "time"

// OnCollected has f called after each garbage collection, with the images that are left and
// when the collection began. Call it before Run.
func (c *Collector) OnCollected(f func(ids []string, began time.Time)) { c.deps.Remaining = f }
