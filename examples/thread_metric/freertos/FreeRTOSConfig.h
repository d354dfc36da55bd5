/* FreeRTOS for Thread-Metric: as small as it goes, everything static, no hooks, no checks. Its tick
 * handler only comes 100 times a second; threads of one priority are not sliced by it. */
#define configUSE_PREEMPTION                    1
#define configUSE_TIME_SLICING                  0
#define configUSE_IDLE_HOOK                     0
#define configUSE_TICK_HOOK                     0
#define configCPU_CLOCK_HZ                      25000000
#define configTICK_RATE_HZ                      100
#define configMAX_PRIORITIES                    8
#define configMINIMAL_STACK_SIZE                128
#define configMAX_TASK_NAME_LEN                 8
#define configTICK_TYPE_WIDTH_IN_BITS           TICK_TYPE_WIDTH_32_BITS
#define configUSE_PORT_OPTIMISED_TASK_SELECTION 1
#define configSUPPORT_STATIC_ALLOCATION         1
#define configSUPPORT_DYNAMIC_ALLOCATION        0
#define configKERNEL_INTERRUPT_PRIORITY         255
#define configMAX_SYSCALL_INTERRUPT_PRIORITY    191
#define configCHECK_HANDLER_INSTALLATION        0
#define vPortSVCHandler                         board_service
#define xPortPendSVHandler                      board_pending
#define xPortSysTickHandler                     board_system_tick
