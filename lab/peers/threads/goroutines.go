// Go with one processor. The measurements are those of bench.h.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

const warm = 3

var threads, rounds, arrived int
var finished bool
var mode byte
var result float64

func yields(number int) {
	for i := 0; i < warm; i++ {
		runtime.Gosched()
	}
	began := time.Now()
	for i := 0; i < rounds; i++ {
		runtime.Gosched()
	}
	if number == 0 {
		result = float64(time.Since(began).Nanoseconds()) / (float64(rounds) * float64(threads))
	}
}

func body(number int) {
	if mode == 'y' {
		yields(number)
	}
	if mode != 'm' {
		return
	}
	arrived++
	for (number == 0 && arrived < threads) || (number != 0 && !finished) {
		runtime.Gosched()
	}
	if number == 0 {
		result = memory()
	}
	finished = true
}

func memory() float64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	sum := 0.0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kilobytes float64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %f", &kilobytes); n == 1 {
			sum += kilobytes * 1024
		}
		if n, _ := fmt.Sscanf(lines.Text(), "VmPTE: %f", &kilobytes); n == 1 {
			sum += kilobytes * 1024
		}
	}
	return sum
}

func batch() {
	var all sync.WaitGroup
	for i := 0; i < threads; i++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			body(number)
		}(i)
	}
	all.Wait()
}

func main() {
	if len(os.Args) != 4 {
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	mode = os.Args[1][0]
	threads, _ = strconv.Atoi(os.Args[2])
	rounds, _ = strconv.Atoi(os.Args[3])
	if mode == 'c' {
		batch()
		began := time.Now()
		for i := 0; i < rounds; i++ {
			batch()
		}
		result = float64(time.Since(began).Nanoseconds()) / (float64(rounds) * float64(threads))
	} else {
		before := memory()
		batch()
		if mode == 'm' {
			result = (result - before) / float64(threads)
		}
	}
	fmt.Printf("%.2f\n", result)
}
