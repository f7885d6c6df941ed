"""ROS messages: the types avrt knows, those a log defines, making and converting them."""
