/* Thread-Metric on FreeRTOS. */
#include "FreeRTOS.h"
#include "queue.h"
#include "semphr.h"
#include "task.h"

#include "board.h"
#include "thread_metric.h"

static StackType_t stacks[5][128];
static StaticTask_t tasks[5];
static StaticSemaphore_t semaphore_room;
static SemaphoreHandle_t semaphore;
static StaticQueue_t queue_room;
static uint8_t room[10 * MESSAGE_WORDS * sizeof(uint32_t)];
static QueueHandle_t queue;

void metric_create(void (*entry)(void *), uint32_t number)
{
    if (!semaphore) {
        semaphore = xSemaphoreCreateBinaryStatic(&semaphore_room);
        xSemaphoreGive(semaphore);
        queue = xQueueCreateStatic(10, MESSAGE_WORDS * sizeof(uint32_t), room, &queue_room);
    }
    xTaskCreateStatic(entry, "metric", 128, (void *)(uintptr_t)number, 1, stacks[number],
                      &tasks[number]);
}

void metric_relinquish(void)
{
    taskYIELD();
}

void metric_take(void)
{
    xSemaphoreTake(semaphore, portMAX_DELAY);
}

void metric_give(void)
{
    xSemaphoreGive(semaphore);
}

void metric_send(const uint32_t message[MESSAGE_WORDS])
{
    xQueueSend(queue, message, portMAX_DELAY);
}

void metric_receive(uint32_t message[MESSAGE_WORDS])
{
    xQueueReceive(queue, message, portMAX_DELAY);
}

void metric_run(void)
{
    vTaskStartScheduler();
}

void vApplicationGetIdleTaskMemory(StaticTask_t **task, StackType_t **stack,
                                   configSTACK_DEPTH_TYPE *words)
{
    static StaticTask_t idle;
    static StackType_t idle_stack[configMINIMAL_STACK_SIZE];
    *task = &idle;
    *stack = idle_stack;
    *words = configMINIMAL_STACK_SIZE;
}
